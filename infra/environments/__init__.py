"""Environments that workloads run in: a cluster and all around it, made and taken away by one build each."""
