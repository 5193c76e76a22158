"""The entry points of the four Cloud Run functions; nothing else belongs here."""
