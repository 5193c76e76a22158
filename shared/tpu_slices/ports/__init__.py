"""What the flows need from the outside, as protocols: each is implemented by an adapter and by an in-memory fake."""
