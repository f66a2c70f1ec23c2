"""Servers as they are deployed, under the load of tools that others use: the load comes from the client's side."""
