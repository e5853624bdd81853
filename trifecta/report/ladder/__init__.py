"""A ladder in the terminal, as a picture, as a table and in the page of a reproduction."""
