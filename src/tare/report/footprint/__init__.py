"""The report on footprints: as data, in a terminal and on the page."""
