"""For all tests: no property is timed, for a busy machine takes its time (hypothesis gives an example 200 ms)."""

import gc

from hypothesis import settings

settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")
# Tests and modules live to the end: not to look through them so often for cycles saves a twelfth of the time.
gc.set_threshold(20_000)
