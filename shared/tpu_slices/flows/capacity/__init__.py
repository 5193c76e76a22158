"""What is done about capacity: where slices are asked for, and what is kept that nobody uses at the moment."""
