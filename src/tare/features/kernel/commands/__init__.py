"""Commands of footprints, surfaces and the lab: their options, and their work."""
