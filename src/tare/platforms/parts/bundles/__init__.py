"""Bundles of the Open Container Initiative, and what they deny."""
