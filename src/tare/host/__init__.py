"""The host: processes, control groups, networks, roots, the journal and the removers."""
