"""What the lives of instances cost, as a section of the report."""
