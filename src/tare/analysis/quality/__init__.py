"""Context of a figure: its disturbances, its limits, and its steadiness."""
