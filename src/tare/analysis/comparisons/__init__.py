"""Comparisons of platforms with each other, of campaigns with others, and corrections for many verdicts."""
