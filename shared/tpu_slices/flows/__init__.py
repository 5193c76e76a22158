"""One flow each from fact to effect: look, decide, remember, act, note. Ports and domain only; no vendor, no wire."""
