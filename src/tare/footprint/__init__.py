"""A platform's use of the host's kernel: what its processes may ask for (surface), and what ran (footprint)."""
