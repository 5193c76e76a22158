"""The first step of a build: asks Google Cloud and the clusters what a deployment needs, and tells all that is missing.

Questions are asked in `questions`; what the answers mean is decided by pure functions, one module per subject.
"""
