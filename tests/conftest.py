"""Fixtures every test may ask for."""

from hypothesis import settings

pytest_plugins = ["tests.emulators"]

# A law is tried on so many examples; how long one takes on a busy machine says nothing.
settings.register_profile("gate", max_examples=60, deadline=None)
settings.load_profile("gate")
