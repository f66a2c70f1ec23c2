"""How footprints are taken: on this host, on a live instance or in a lab."""
