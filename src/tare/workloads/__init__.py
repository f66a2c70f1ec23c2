"""Workloads: one file a workload, by family; ``base`` is the contract."""
