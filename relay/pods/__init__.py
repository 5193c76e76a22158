"""How the pods of the Jobs on slices are: read from the API server's JSON, kept by Job, and counted."""
