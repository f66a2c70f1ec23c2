"""The page, and what is exported."""
