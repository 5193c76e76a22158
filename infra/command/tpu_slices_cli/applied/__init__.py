"""What becomes of a file that is applied, beside its slices: what is refused, what its objects give each other."""
