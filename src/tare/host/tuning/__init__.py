"""Settings for a quieter host during a campaign, and noisy neighbours, which are started on purpose."""
