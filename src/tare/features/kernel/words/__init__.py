"""Texts on footprints and surfaces."""
