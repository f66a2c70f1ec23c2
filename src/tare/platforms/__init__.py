"""Platforms: one file a platform; ``base`` is the contract."""
