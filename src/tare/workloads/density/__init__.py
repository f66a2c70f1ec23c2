"""Workloads with several instances of a platform at once."""
