"""The values that decisions are about: slices, workloads, records, facts, observations. Pure."""
