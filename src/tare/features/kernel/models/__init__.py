"""Footprints and surfaces as `tare report --json` prints them."""
