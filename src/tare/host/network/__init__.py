"""The campaign's bridge, the client behind it, and what an instance may reach over it."""
