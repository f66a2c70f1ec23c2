"""Workloads that measure the start of an instance, and the size of its image."""
