"""Workloads that ask for a kernel's services, one call each: what an application pays a platform by the call."""
