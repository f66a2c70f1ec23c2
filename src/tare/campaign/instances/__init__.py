"""Instances: how they are started, held and ended."""
