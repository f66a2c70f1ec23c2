"""Parts of pages, drawings and tables of all kinds."""
