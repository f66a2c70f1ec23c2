"""Code that platforms of all kinds share."""
