"""Which links there are in the network namespace of this process."""

import socket


def links() -> frozenset[str]:
    """Their names, asked of the kernel: a mounted ``/sys`` shows those of the namespace that it was mounted in."""
    return frozenset(name for _, name in socket.if_nameindex())
