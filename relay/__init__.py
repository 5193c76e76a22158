"""The part that runs in the cluster: watches, translates, reports facts; posts Events and answers questions.

It decides nothing about slices and remembers nothing that a list of the cluster's objects does not bring back.
"""
