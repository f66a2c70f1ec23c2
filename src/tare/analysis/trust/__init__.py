"""What stands beside a figure: what disturbed it, what it cannot show, how steady it was."""
