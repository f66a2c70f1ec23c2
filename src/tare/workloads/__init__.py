"""What is measured: one file a workload, by family. The contract is in `tare.workloads.base`."""
