"""The controllers of the local cluster: what controllers, scheduler and kubelets do for JobSets on TPU slices.

These are the JobSet and Job controllers, the node lifecycle controller, the scheduler and the kubelets of all
nodes, each a level-triggered `reconcile(objects, now, pace)` that reads the whole state and moves it towards the
desired one. They access the cluster only through `Objects`, and decide in pure functions. An object that a controller
cannot process gets an event that says so, and does not affect other objects. Validation, defaults and admission of
the API server belong to the parent package; the local GKE creates and removes nodes. Nothing here knows about
slices, node pools or the provisioner, and no container is ever executed.
"""

from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.controllers.run import reconcile, run

__all__ = ["Pace", "reconcile", "run"]
