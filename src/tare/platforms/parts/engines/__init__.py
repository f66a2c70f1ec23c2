"""Container engines and their daemons."""
