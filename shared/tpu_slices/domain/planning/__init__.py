"""Derives slice specs from what pod templates request, or the refusal that names the key at fault. Pure."""
