"""A user's own application, as a file of TOML describes it (docs/applications-own.md)."""
