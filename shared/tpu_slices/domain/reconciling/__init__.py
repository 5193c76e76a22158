"""Decisions on slices: from demand, records and observations to updated records and actions. Pure."""
