"""Facts about the host's hardware and kernel: CPUs, memory, clocks and counters. Read, never changed."""
