"""The search of `trifecta map` against a full grid: on surfaces that are known, and in one real run."""
