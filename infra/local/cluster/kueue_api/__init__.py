"""Kueue in the API server: its kinds, their defaults, rules, schemas and columns."""
