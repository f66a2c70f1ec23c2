"""Daemons that platforms need: tare's own, and access to the host's."""
