"""Programs that are the services of the workloads ``chain``, ``fan-in`` and ``sba-registration``, and their client."""
