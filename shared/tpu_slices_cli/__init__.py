"""The command `slices`, for people: what a manifest would get, what there is and why, and a hand on it.

Reads files, prints, and calls the flows that the functions call; decides nothing. Functions and relay never import it.
"""
