"""The sums that the published studies make of a campaign, and theirs computed again."""
