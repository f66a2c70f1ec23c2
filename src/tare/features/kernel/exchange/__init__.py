"""Requests for footprints, and their results."""
