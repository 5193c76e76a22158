"""The command `slices`, for users and operators: plan, inspect and control slices, and configure clusters.

It reads files, calls the same flows as the functions, and prints; it decides nothing. Functions and relay never import
it.
"""
