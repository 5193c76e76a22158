"""The description of what a slice consists of on Compute Engine: the proof of our ownership, as one line of JSON.

Policies, templates and groups have no labels of their own in common; each has a description of up to 2,048 characters.
Ours needs about 480, and 950 with the longest possible names. `pool_labels` is the same for node pools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tpu_slices.domain.model.observations import PoolSeen
from tpu_slices.domain.model.slices import (
    ClusterId,
    Owner,
    OwnerKind,
    SliceSpec,
    WorkloadJob,
    WorkloadUid,
    claim_id,
    pool_name,
)

KEY = "tpu-slice-provisioner"
_KINDS = {kind.value: kind for kind in OwnerKind}


def description_of(job: WorkloadJob, attempt: int, spec: SliceSpec) -> str:
    """Return the description of an attempt's policy, template and group."""
    return described(job, attempt, spec.zone, spec.fingerprint)


def described(job: WorkloadJob, attempt: int, zone: str, fingerprint: str) -> str:
    """Return such a description of what is in a zone, and was made for a request with this fingerprint."""
    owner = {
        "kind": job.owner.kind.value,
        "namespace": job.owner.namespace,
        "name": job.owner.name,
        "uid": job.owner.uid,
    }
    proof = {
        "cluster": job.cluster,
        "slice": claim_id(job),
        "attempt": attempt,
        "zone": zone,
        "fingerprint": fingerprint,
        "owner": owner,
        "replicated_job": job.replicated_job,
        "job_index": job.job_index,
    }
    return json.dumps({KEY: proof})


def missing_proof(description: str, job: WorkloadJob) -> str | None:
    """Return why a description does not prove ownership by the Job, or None if cluster, slice and UID agree."""
    proof = _proof(description)
    if proof is None:
        return f"is not a line of JSON with {KEY}."
    owner = proof.get("owner")
    found = {
        "cluster": proof.get("cluster"),
        "slice": proof.get("slice"),
        "owner.uid": owner.get("uid") if isinstance(owner, Mapping) else None,
    }
    for name, expected in {"cluster": job.cluster, "slice": claim_id(job), "owner.uid": job.owner.uid}.items():
        if found[name] != expected:
            return f'has "{found[name]}" as {name}, not "{expected}".'
    return None


def fingerprint_of(description: str) -> str | None:
    """Return the fingerprint in a description, or None if there is none."""
    return _text(description, "fingerprint")


def zone_of(description: str) -> str | None:
    """Return the zone of the group for which something was made, or None if the description does not say it."""
    return _text(description, "zone")


def pool_seen(name: str, description: str, cluster: ClusterId) -> PoolSeen | None:
    """Return the pool that a description tells of, or that has a name of ours without one; None for any other.

    A slice id covers cluster, UID, replicated job and index: descriptions that were copied or edited do not match it.
    What a description says to be another cluster's is none of this one's.
    """
    proof = _proof(description)
    if proof is not None and proof.get("cluster") != cluster:
        return None
    known = _described(name, proof, cluster) if proof is not None else None
    return known or PoolSeen.named(name)


def _described(name: str, proof: Mapping[str, Any], cluster: ClusterId) -> PoolSeen | None:
    try:
        job, attempt = _job(proof, cluster), int(proof["attempt"])
        expected = pool_name(claim_id(job), attempt)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if (name, proof.get("slice")) != (expected, claim_id(job)):
        return None
    return PoolSeen(name=name, slice_id=claim_id(job), attempt=attempt, job=job)


def _text(description: str, field: str) -> str | None:
    found = (_proof(description) or {}).get(field)
    return found if isinstance(found, str) else None


def _job(proof: Mapping[str, Any], cluster: ClusterId) -> WorkloadJob:
    owner = proof["owner"]
    return WorkloadJob(
        cluster=cluster,
        owner=Owner(
            kind=_KINDS[owner["kind"]],
            namespace=owner["namespace"],
            name=owner["name"],
            uid=WorkloadUid(owner["uid"]),
        ),
        replicated_job=proof["replicated_job"],
        job_index=int(proof["job_index"]),
    )


def _proof(description: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(description)
    except ValueError:
        return None
    proof = found.get(KEY) if isinstance(found, Mapping) else None
    return proof if isinstance(proof, Mapping) else None
