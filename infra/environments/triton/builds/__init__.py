"""What the builds of the Triton environment decide: variables, whether a plan may be applied, what is served."""
