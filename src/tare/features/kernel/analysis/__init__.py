"""Analysis of footprints: what platforms run of the host's kernel, as sets, overlaps and shares.

A *thing* is what a level counts: a system call, a kernel function, a line of the kernel's source, or a stack.
"""
