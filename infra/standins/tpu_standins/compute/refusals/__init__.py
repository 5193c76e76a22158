"""What Compute Engine refuses: one row of a table for each fact, a pure function of request and state."""
