"""The report on surfaces: as data, in a terminal and on the page."""
