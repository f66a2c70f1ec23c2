"""The summary figures of the published studies: made of a campaign, and their own computed again."""
