"""The values that decisions use: slices, workloads, records, facts, observations. Pure."""
