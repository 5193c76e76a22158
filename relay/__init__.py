"""The part that runs in the cluster: it watches objects, publishes facts, posts Events and answers questions.

It decides nothing about slices, and keeps no state that listing the cluster's objects does not restore.
"""
