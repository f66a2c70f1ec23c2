"""What drivers share, and what the larger ones are made of."""
