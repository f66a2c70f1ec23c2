"""What platforms run of the host's kernel, as sets and shares."""
