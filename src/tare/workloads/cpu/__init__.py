"""Workloads that ask for the processor."""
