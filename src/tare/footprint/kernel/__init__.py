"""What the kernel shows of an instance, and the means to ask it."""
