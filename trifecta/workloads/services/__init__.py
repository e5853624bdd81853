"""The workloads in which services call each other: ``chain``, ``fan-in`` and ``sba-registration``."""
