"""Writes what the functions say of TPUNodeGroups to their objects, and lets those go whose slices are GONE."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from relay.events import of_a_node_group
from relay.node_groups.status import events_of, let_go, ready_of, status_patch, with_reason
from tpu_slices.domain.model.node_groups import FINALIZER, NodesGone
from tpu_slices.domain.model.slices import ClaimId, Owner, WorkloadUid
from tpu_slices.domain.planning.tpu_operator import holds
from tpu_slices.ports.publisher import NodeGroupUpdate

NOT_READY, TPU_UNHEALTHY = "NodeNotReady", "TPUUnhealthy"
"""Reasons of a group that was Ready: a node of it is not any more, or it is, and offers fewer chips than it has."""
REMEMBERED = 10_000
"""The most groups for which the time of the last update is kept."""


class Groups(Protocol):
    """Single calls to the API server; they raise Temporary and Permanent as `relay.cluster.Cluster` does."""

    def workload(self, owner: Owner) -> Mapping[str, Any] | None: ...

    def post(self, event: Mapping[str, Any]) -> None: ...

    def patch_group(self, owner: Owner, patch: Mapping[str, Any]) -> None: ...

    def patch_group_status(self, owner: Owner, patch: Mapping[str, Any]) -> None: ...

    def nodes_of_slice(self, slice_id: ClaimId) -> Mapping[str, int | None]: ...

    def delete_node(self, node: str) -> None: ...


class NodeGroupWriter:
    """May be called by any thread. What fails is Temporary: the update is delivered again."""

    def __init__(self, groups: Groups, lacks_chips: Callable[[ClaimId], bool]) -> None:
        self._groups = groups
        self._lacks_chips = lacks_chips
        self._written_at: OrderedDict[WorkloadUid, datetime] = OrderedDict()
        self._lock = threading.Lock()

    def write(self, update: NodeGroupUpdate) -> None:
        """Write the status where it differs, and what changed as Events; an older update than the last is ignored.

        Nothing is written to a group that TPU operator holds, and we do not. Of a group whose slice is GONE, the Node
        objects are deleted that nobody else deletes, and then our finalizer.
        """
        if not self._is_newest(update):
            return
        if _is_unready(update) and self._lacks_chips(update.slice_id):
            update = with_reason(update, TPU_UNHEALTHY)
        group = self._groups.workload(update.owner)
        if group is None or group["metadata"]["uid"] != update.owner.uid or _is_anothers(group):
            return
        if update.status.gone and "deletionTimestamp" in group["metadata"]:
            self._let_go(group, update)
            return
        for told in events_of(group, update):
            self._groups.post(of_a_node_group(update, told))
        if (patch := status_patch(group, update)) is not None:
            self._groups.patch_group_status(update.owner, patch)

    def forget_nodes(self, gone: NodesGone) -> None:
        """Delete the Node objects of a pool that is gone: where no cloud controller runs, nobody else does.

        A message about it may be late: no pool has its name again.
        """
        for node, attempt in self._groups.nodes_of_slice(gone.slice_id).items():
            if attempt == gone.attempt:
                self._groups.delete_node(node)

    def _let_go(self, group: Mapping[str, Any], update: NodeGroupUpdate) -> None:
        for node in sorted(self._groups.nodes_of_slice(update.slice_id)):
            self._groups.delete_node(node)
        if (patch := let_go(group)) is not None:
            self._groups.patch_group(update.owner, patch)

    def _is_newest(self, update: NodeGroupUpdate) -> bool:
        with self._lock:
            last = self._written_at.get(update.owner.uid)
            if last is not None and update.at < last:
                return False
            self._written_at[update.owner.uid] = update.at
            self._written_at.move_to_end(update.owner.uid)
            if len(self._written_at) > REMEMBERED:
                self._written_at.popitem(last=False)
            return True


def _is_anothers(group: Mapping[str, Any]) -> bool:
    finalizers = group["metadata"].get("finalizers") or ()
    return FINALIZER not in finalizers and holds(finalizers)


def _is_unready(update: NodeGroupUpdate) -> bool:
    return ready_of(update).reason == NOT_READY
