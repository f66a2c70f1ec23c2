"""Platforms against the baseline and each other: verdicts, and what many of them at once are worth."""
