"""Controllers of others, as their projects release them: JobSet, LeaderWorkerSet, Kueue.

`tpu_standins.building` builds each from the `go.mod` of its folder in `modules`, with its CRDs, roles and webhooks as
they are in the same module (`catalogue`, `build`). `python -m tpu_standins.controllers` installs one in a cluster and
becomes it (`manifests`, `installing`): outside of the cluster, with a token of its own ServiceAccount, under its roles.
"""
