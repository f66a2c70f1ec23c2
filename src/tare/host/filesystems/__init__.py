"""Roots and data volumes of instances, their mounts, and safe ways through trees that a guest may change."""
