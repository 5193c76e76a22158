"""A small Kubernetes API server in one process, with a Job controller, a scheduler and node life cycles.

`store` has the objects and their rules, `http` serves them over TLS, `watch` streams their changes, and `controllers`
act on them. It serves what the local stack, the relay and everyday kubectl use, and answers 501 to anything else;
where it differs from kube-apiserver in what it serves, kube-apiserver is right.
"""
