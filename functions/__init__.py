"""The entry points of the three Cloud Run functions; nothing else belongs here."""
