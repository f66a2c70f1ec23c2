"""What platforms of all kinds share."""
