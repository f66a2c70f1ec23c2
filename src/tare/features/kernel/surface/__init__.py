"""Kernel calls and rights that a platform leaves to a tenant."""
