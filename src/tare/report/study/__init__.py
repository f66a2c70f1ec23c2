"""The report on published studies: their figures, and a campaign's beside them."""
