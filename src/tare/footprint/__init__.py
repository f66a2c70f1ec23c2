"""A platform's use of the host's kernel: its surface (allowed calls) and its footprint (code that ran)."""
