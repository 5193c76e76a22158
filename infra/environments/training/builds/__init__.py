"""What the builds of the training environment decide: variables, whether a plan may be applied, the smoke JobSet."""
