"""Workloads that ask for a kernel's services, one call each: what a call costs an application on a platform."""
