"""Reads who waits for a slot, in the order of turns."""
