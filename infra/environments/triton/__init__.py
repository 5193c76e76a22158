"""Triton Inference Server on GKE."""
