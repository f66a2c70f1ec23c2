"""The report on a campaign: built from its file, in a terminal, and its part of the page."""
