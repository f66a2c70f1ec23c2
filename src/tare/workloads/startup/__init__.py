"""Workloads of the startup."""
