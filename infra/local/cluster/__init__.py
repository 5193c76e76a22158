"""The local Kubernetes API server: a strict stand-in that `kubectl` and the official clients use.

It contains the objects in memory, what the API server decides about them (schema, defaults, validation,
admission, field ownership), authentication and authorization (tokens, RBAC), and the HTTP side (discovery, CRUD,
watch, tables). The controllers (JobSet, Job), the scheduler and the kubelet live in `controllers`, queues and quota
in `kueue`; both access objects through `Objects`.
Nothing here knows about slices, node pools or the provisioner. Whatever is not covered returns 501, never a guess.
"""
