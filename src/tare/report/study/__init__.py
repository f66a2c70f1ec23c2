"""The published studies' figures, and a campaign's beside them."""
