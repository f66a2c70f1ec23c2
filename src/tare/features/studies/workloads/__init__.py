"""Workloads that studies ran and that nothing else needs, one file each."""
