"""A sample relay."""
