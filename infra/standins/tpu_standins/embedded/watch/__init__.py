"""Watches: the stream of changes that a client receives."""
