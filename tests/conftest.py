"""For all tests: no property is timed, for a busy machine takes its time (hypothesis gives an example 200 ms)."""

from hypothesis import settings

settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")
