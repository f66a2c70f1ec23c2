"""A campaign's results: as data, in a terminal, and what the page's script draws."""
