"""The floor of the path from a pod to its node pool: the same hops between the same programs, and nothing decided.

It has the place of the repository's root in a local stack: `functions/main.py` and `python -m relay`.
"""
