"""What watches a trial: machine, resources, transport counters."""
