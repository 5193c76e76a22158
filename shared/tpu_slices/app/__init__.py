"""What a function is made of: how its message is opened and answered, which adapter stands behind which port."""
