"""The decisions, as pure functions.

Only the standard library may be imported here; no clock, environment, logging, vendor or wire format.
"""
