"""The promises of every platform, as checks on real sandboxes: for users, plug-ins' authors, and tare's own tests."""
