"""The run directory: files of a run, their schemas, and the SQL views over them."""
