"""What kind of machine the host is: its CPUs, memory, clocks and counters. Read, never changed."""
