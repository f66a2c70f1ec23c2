"""Requirements of a host as data, and their installation: `tare setup`, and a clone's `scripts/packages`.

This package imports only Python's own library, because a clone runs it before it has any other.
"""
