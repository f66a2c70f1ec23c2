"""What makes the host quieter for a campaign, and noisy neighbours, which are started on purpose."""
