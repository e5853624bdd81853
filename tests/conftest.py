"""For all tests: no property is timed, for a busy machine takes its time (hypothesis gives an example 200 ms)."""

import gc

from hypothesis import settings

settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")
# Tests and modules live to the end; to look through them for cycles as often as is usual takes some 5 % of the time.
gc.set_threshold(20_000)
