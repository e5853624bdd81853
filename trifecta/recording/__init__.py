"""Page archives made of what is there: a folder, a HAR file, or a site that a browser loads through a proxy."""
