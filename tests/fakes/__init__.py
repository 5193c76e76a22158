"""Fulfilments of the ports with memory: each passes the same contract suite as its adapter."""
