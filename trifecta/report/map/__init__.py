"""A map as a picture, a page, a file for programs, and sentences."""
