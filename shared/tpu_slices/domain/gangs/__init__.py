"""What is decided for all claims of a gang at once."""
