"""The texts of `slices explain`. Pure."""
