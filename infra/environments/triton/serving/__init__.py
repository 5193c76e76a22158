"""What runs in Triton's cluster: its manifests, the sample model, and the check that it is served."""
