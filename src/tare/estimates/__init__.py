"""Estimates from arrays of figures; a campaign under way uses them to decide when to stop, and so does the analysis."""
