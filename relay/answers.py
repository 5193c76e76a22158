"""Answers about one workload: from the API server, as a pool may be deleted on them, and the cluster cache may lag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tpu_slices.domain.model.facts import Answer, WorkloadRef, WorkloadState
from tpu_slices.domain.model.slices import Owner
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.readers import READERS


class Workloads(Protocol):
    """As `relay.cluster.Cluster`."""

    def workload(self, owner: Owner) -> Mapping[str, Any] | None: ...


def answer(owner: Owner, workloads: Workloads) -> Answer:
    """Return a workload's state. Raise Temporary, or Permanent if the object cannot be parsed."""
    found, reader = workloads.workload(owner), READERS[owner.kind]
    if found is None or found["metadata"]["uid"] != owner.uid:
        gone = WorkloadRef(owner=owner, generation=0, resource_version="")
        return Answer(workload=gone, state=WorkloadState.MISSING)
    try:
        return Answer(workload=reader.ref(found), state=reader.state(found))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Permanent(f"the {owner.kind} {owner.full_name} cannot be parsed: {error!r}") from error
