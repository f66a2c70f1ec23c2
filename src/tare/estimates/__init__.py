"""Estimates from arrays of figures, for the analysis and for running campaigns, which decide by them when to stop."""
