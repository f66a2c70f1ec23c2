"""Texts on studies and scores."""
