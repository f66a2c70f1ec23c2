"""Daemons that platforms need: tare's own, and how the host's are reached."""
