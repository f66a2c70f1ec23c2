"""What is to be measured, in which order, and when it is enough: pure data."""
