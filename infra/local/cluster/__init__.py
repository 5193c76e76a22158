"""The local Kubernetes API server: a strict stand-in that `kubectl` and the official clients talk to.

Here live the objects in memory, what the API server decides about them (schema, defaults, validation,
admission, owners of fields), who may do what (tokens, RBAC) and the HTTP side (discovery, CRUD, watch, tables).
What acts upon objects (the JobSet and Job controllers, the scheduler, the kubelet) lives in `controllers`, queues
and quota in `kueue`; both reach them through `Objects`.
Nothing here knows slices, node pools or the provisioner. What is not covered answers 501, never a guess.
"""
