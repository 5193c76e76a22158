"""Where slices may be made, as settings and workloads say it."""
