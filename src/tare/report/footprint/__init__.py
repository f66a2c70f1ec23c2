"""Footprints: as data, in a terminal and on the page."""
