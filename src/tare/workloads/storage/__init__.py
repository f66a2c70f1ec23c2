"""Workloads that ask for the data volume."""
