"""Observation of the host while a campaign runs."""
