"""A campaign as it runs: blocks, stages, trials."""
