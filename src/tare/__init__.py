"""tare weighs virtualization: the same bits under every isolation technology, with honest error bars."""

__version__ = "0.1.0"
