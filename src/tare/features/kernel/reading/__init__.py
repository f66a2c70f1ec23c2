"""Sources of data about an instance in the kernel."""
