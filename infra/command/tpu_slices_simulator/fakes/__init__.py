"""Implementations of the ports in memory: each passes the same contract suite as its adapter."""
