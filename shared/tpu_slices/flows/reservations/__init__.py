"""Looks at reservations, for all who wait for them: what is known of them says which creations may start."""
