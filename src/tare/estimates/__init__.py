"""Estimates from arrays of figures: what a campaign under way asks of its own samples, and the analysis builds on."""
