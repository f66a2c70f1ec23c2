"""Access to the kernel that needs nothing else of tare: mounts, paths, settings, links, CPUs, processes."""
