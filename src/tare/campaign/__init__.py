"""Campaigns: plan and schedule as pure data, then run, resume and stop."""
