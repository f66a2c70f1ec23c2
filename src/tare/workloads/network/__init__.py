"""Workloads that ask for the path between an instance and its clients."""
