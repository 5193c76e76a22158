"""The life of the local cluster: what controllers, scheduler and kubelets do for JobSets on TPU slices.

Here live the JobSet and Job controllers, the node life-cycle controller, the scheduler and the kubelets of all
nodes, each a level-triggered `reconcile(objects, now, pace)` that looks at the whole state and makes it more right.
They meet the cluster through `Objects` alone and decide in pure functions. An object that one of them cannot deal
with gets an event that says so, and harms no other. What the API server refuses, defaults or admits belongs
to the package above; nodes are made and removed by the local GKE. Nothing here knows slices, node pools or
the provisioner, and no container is ever executed.
"""

from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.controllers.run import reconcile, run

__all__ = ["Pace", "reconcile", "run"]
