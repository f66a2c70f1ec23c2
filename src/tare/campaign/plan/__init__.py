"""The plan of a campaign: its work, its order, and its end. Pure data."""
