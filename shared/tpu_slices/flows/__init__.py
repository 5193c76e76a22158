"""The flows, from a fact to its effect: look, decide, remember, act, note. They use ports and domain only."""
