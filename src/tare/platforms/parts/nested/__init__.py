"""Platforms within a guest."""
