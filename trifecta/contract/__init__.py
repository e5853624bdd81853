"""What the engine, the drivers in its place and the runner say to each other, as types (docs/architecture.md, 1).

``engine/schemas`` holds the JSON Schemas that the engine makes of its own structs; a test compares each type here
with its schema, field by field; ``scripts/contract_types.py`` writes those of impairments. Times are integers in ns on
CLOCK_MONOTONIC, sizes in octets, shares 0 to 1.
"""
