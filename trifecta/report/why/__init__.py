"""A search for causes in the terminal, as a picture, as a page, and in the report of its run."""
