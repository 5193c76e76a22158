"""JobSet for the embedded API server: as much as the demo and the examples need, all else is refused."""
