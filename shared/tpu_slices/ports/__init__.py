"""What the flows need from the outside, as contracts: each is fulfilled by an adapter and by a fake with memory."""
