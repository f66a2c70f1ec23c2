"""Workloads: one file each, by family. The contract is in `tare.workloads.base`."""
