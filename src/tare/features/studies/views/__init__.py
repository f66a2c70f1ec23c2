"""Tables and drawings of studies, of results beside them, and of scores."""
