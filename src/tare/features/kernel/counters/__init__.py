"""Counters of what runs in the kernel, one file each."""
