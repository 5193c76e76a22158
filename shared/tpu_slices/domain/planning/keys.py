"""Which pods hosts are for: a host has a key, and under the admission policy a pod runs on hosts with one of its own.

Pure. Except a group's, a key is an identity: it fits nothing once its workload has ended. It is the value of a label.

| the slice of                  | its key                  | from, on a pod                                       |
|-------------------------------|--------------------------|------------------------------------------------------|
| a Job of a JobSet             | `UID.jN`                 | jobset-uid and job-global-index                      |
| Jobs of one pod that share it | `UID.rN`, of their first | jobset-uid, and job-global-index less job-index      |
| a Job by itself               | its UID                  | the reference to what controls it                    |
| a group of a LeaderWorkerSet  | its group key            | leaderworkerset.sigs.k8s.io/group-key                |
| a pod that a controller made  | the controller's UID     | the reference to what controls it                    |
| a pod that nothing controls   | `NAME.pod`               | generateName, or else the name                       |
| a TPUNodeGroup                | none                     | a pod selects the group itself                       |
| nobody yet: a spare           | its own name             | no pod                                               |

Hosts that may come to other namespaces (`pool_labels.ANY_NAMESPACE_LABEL`) are told of with the namespace that they are
for, as `NAMESPACE/KEY` (`model.host_keys`). Their pool has neither: its key is the slice's own name, and it names no
namespace, so that no pod of any comes to a host that the vendor makes anew. The relay gives them both, on nodes that it
closed before.

A pod of a JobSet does not say whether its Job shares a slice: it has the first two keys, and hosts have one of them. A
group has no UID of its own, and its pods do not carry that of their LeaderWorkerSet: its key is made of namespace and
name, as LeaderWorkerSet's webhook does (sigs.k8s.io/lws pkg/webhooks/pod_webhook.go). JobSet's labels are as of 0.10
(sigs.k8s.io/jobset pkg/controllers/jobset_controller.go).

When a pod by itself is judged it has neither a UID nor a name that is to be generated: pods of one controller, and
those with one generateName, have one key, and may come to each other's hosts (`reconciling.taking`).
"""

from __future__ import annotations

import hashlib

from tpu_slices.domain.model.slices import OwnerKind, WorkloadJob
from tpu_slices.domain.planning.host_labels import is_label_value

KEY_LABEL = "google.com/tpu-slice-key"
"""The label of hosts whose value is their key."""


def key_of(job: WorkloadJob, first_job: int | None, *, shared: bool = False, pod_key: str = "") -> str:
    """Return the key of the slice of a Job or group; empty: its pods have none, or one that no host can carry.

    `first_job`: the index of the replicatedJob's first Job among all Jobs of the JobSet; None: it is not known.
    `shared`: all Jobs of the replicatedJob have the slice. `pod_key`: that of a pod by itself.
    """
    key = pod_key if job.owner.kind is OwnerKind.POD else _key(job, first_job, shared=shared)
    return key if is_label_value(key) else ""


def _key(job: WorkloadJob, first_job: int | None, *, shared: bool) -> str:
    owner = job.owner
    match owner.kind:
        case OwnerKind.JOBSET:
            if first_job is None:
                return ""
            return f"{owner.uid}.r{first_job}" if shared else f"{owner.uid}.j{first_job + job.job_index}"
        case OwnerKind.JOB:
            return owner.uid
        case OwnerKind.LEADER_WORKER_SET:
            return hashlib.sha1(f"{owner.namespace}/{job.job_name}".encode(), usedforsecurity=False).hexdigest()
        case OwnerKind.TPU_NODE_GROUP | OwnerKind.POD | OwnerKind.SPARE:
            return ""
