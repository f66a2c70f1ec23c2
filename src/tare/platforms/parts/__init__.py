"""Code that several platforms share, and parts of the larger ones."""
