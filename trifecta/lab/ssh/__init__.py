"""Hosts by SSH: the engine is brought there, started, spoken to by its contract, and leaves nothing behind.

The user's own keys, agent and configuration are used (``~/.ssh``), and host keys are verified. What starts programs
here knows nothing of studies and trials. Needs the extra ``hosts``, which is looked for when a host is connected to.
"""
