"""Slices as managed instance groups of Compute Engine."""
