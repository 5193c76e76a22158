"""The stack kept running for people: parts that die are restarted, faults can be injected, logs are in one place.

The parts are defined in `infra.local.stack`; each fault is documented in the stand-in that implements it.
"""
