"""What a footprint is asked for, and what comes back."""
