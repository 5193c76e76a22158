"""The hosts that the relay sees, by several names, and who stays on them without a leader."""
