"""What is decided about capacity that nobody uses at the moment."""
