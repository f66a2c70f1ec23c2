"""Commands on studies and scores: their options, and their work."""
