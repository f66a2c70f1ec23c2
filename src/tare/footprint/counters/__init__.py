"""The counters of what runs of the kernel: one file each."""
