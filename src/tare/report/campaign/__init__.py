"""A campaign's report as data, as tables in a terminal, and as figures for the page's script."""
