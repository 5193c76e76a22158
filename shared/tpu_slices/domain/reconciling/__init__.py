"""From what is wanted, remembered and seen to what is remembered and done next. Pure."""
