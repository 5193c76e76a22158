"""The three doors of the system, as Cloud Run functions call them; nothing else lives here."""
