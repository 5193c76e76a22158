"""The provisioner on one machine: its programs and the emulators and stand-ins they need, started and stopped together.

Nothing in shared/, functions/ or relay/ imports from here or knows that it runs here: endpoints come from the
environment. None of the provisioner's own behaviour lives here, only that of its surroundings.
"""
