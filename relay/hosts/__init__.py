"""The hosts that the relay sees, by several names: who stays on them without a leader, and which are closed."""
