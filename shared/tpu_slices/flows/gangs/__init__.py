"""Gangs: what is decided for all of their claims at once, and saved."""
