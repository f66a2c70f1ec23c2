"""The report on surfaces: built from a file, in a terminal, and its part of the page."""
