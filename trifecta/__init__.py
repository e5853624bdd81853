"""Trifecta: does HTTP/3 beat HTTP/2 and HTTP/1.1 for this traffic, on this path, with these programs?"""

__version__ = "0.1.0"
