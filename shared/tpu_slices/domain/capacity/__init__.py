"""What is decided about capacity: where slices are asked for, what is known of it before, and what is kept unused."""
