"""Campaigns on many hosts: Ansible brings tare to each, starts it there, and fetches each host's file."""
