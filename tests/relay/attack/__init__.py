"""Attempts to shake the relay off. Each test is one; what it checks the relay by is what the relay says afterwards."""
