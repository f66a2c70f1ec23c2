"""What is asked of the kernel and needs nothing else of tare: mounts, paths, settings, links, CPUs, processes."""
