"""Spares: slices that are made beside demand, as the settings ask for them."""
