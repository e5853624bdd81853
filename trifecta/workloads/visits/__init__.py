"""The workloads in which a browser visits a page or watches a video: ``page`` and ``video``."""
