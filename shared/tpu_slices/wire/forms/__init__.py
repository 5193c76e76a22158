"""The schemas of parts of a cluster's settings, and what they have in common."""
