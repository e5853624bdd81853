"""The checks: measured conditions of validity, one file each."""
