"""What of a host's kernel a platform reaches: what its processes may call, and what ran while it worked."""
