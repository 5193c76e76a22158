"""The decisions, pure: values in, values out.

Only the standard library may be imported here; no clock, environment, logging, vendor or wire format.
"""
