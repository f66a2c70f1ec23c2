"""Execution of footprint requests: on this host, on a live instance or in a lab."""
