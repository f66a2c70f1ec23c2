"""Workloads of the cpu."""
