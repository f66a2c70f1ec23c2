"""Platforms against each other, campaigns against others, and what many verdicts at once are worth."""
