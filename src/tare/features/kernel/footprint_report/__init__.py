"""The report on footprints: built from a file, in a terminal, and its part of the page."""
