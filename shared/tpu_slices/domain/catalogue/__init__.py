"""What TPUs there are, and what slices of them are made of: one table, one value object. Pure."""
