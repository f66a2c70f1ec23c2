"""What a host needs to be installed, as data, and how that is brought: `tare setup`, and a clone's `scripts/packages`.

Only Python's own library is imported in here, since a clone asks before it has any other.
"""
