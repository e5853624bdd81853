"""Web pages as folders: generated, made of an asset library, or recorded, to be replayed in the lab."""
