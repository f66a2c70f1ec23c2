"""What is done with an instance beside its work, by the platform's own commands (docs/life.md)."""
