"""Workloads that ask for memory."""
