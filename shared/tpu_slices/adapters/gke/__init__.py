"""Slices as node pools of GKE."""
