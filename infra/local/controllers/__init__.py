"""Controllers of others, as their projects release them: JobSet, LeaderWorkerSet.

`make kubernetes` builds each from the `go.mod` of its folder in `modules`, with its CRDs, roles and webhooks as they
are in the same module (`catalogue`, `build`). `python -m infra.local.controllers` installs one in a cluster and becomes
it (`manifests`, `installing`): outside of the cluster, with a token of its own ServiceAccount, under its own roles.
"""
