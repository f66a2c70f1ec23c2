"""Workloads of the storage."""
