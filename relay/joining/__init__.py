"""How hosts of a self-managed cluster join it: their tokens, and what proves the API server to them."""
