"""Attempts to make the relay fail: each test is one, and checks what the relay reports afterwards."""
