"""What the API server knows of Kueue: its kinds, their defaults, rules, schemas and columns."""
