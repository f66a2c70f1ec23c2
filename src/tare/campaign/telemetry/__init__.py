"""What is watched while a campaign runs."""
