"""Summary figures of the published studies: computed from a campaign, and their own recomputed."""
