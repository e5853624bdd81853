"""What the packets of a connection say: set-up, overhead, rate, stalls, recovery, blocking.

Pure functions on the tables of a dissection. Definitions and sources: docs/packets.md. What cannot be known is None,
with a note.
"""
