"""Code that virtual machines share."""
