"""What is done about capacity that nobody uses at the moment."""
