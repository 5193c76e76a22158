"""The stack kept up for people: parts that die are started again, trouble is made at buttons, logs are in one place.

What the parts are is said in `infra.local.stack`; what a fault means, in the stand-in that has it.
"""
