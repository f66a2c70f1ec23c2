"""How long an instance takes to be there."""
