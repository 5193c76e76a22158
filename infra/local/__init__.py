"""The provisioner on one machine: its programs, the emulators and stand-ins they need, started and ended together.

Nothing in shared/, functions/ or relay/ imports from here or knows that it runs here: endpoints come from the
environment. No behaviour of the provisioner lives here, only of what surrounds it.
"""
