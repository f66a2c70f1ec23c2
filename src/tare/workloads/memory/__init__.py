"""Workloads of the memory."""
