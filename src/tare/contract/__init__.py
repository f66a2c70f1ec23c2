"""What every platform promises, as checks on real sandboxes: for users, plugins' authors, and tare's own tests."""
