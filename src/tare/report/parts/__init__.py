"""What pages, drawings and tables are made of, whatever they show."""
