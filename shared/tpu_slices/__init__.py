"""Everything that the functions and the relay have in common; what only one of them needs does not live here."""
