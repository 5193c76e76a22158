"""The parts of a function: how its message is opened and answered, and which adapter implements which port."""
