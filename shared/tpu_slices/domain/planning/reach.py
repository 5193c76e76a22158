"""Which hosts a pod may come to, by what the admission policy, the webhook and its author say. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tpu_slices.domain.model.facts import Reach, Requirement, TemplateRequest, WaitingLeader
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.planning.pool_labels import OF_ONE_SLICE, OWNER_LABEL, PARENT_NAME_LABEL

_OWN = frozenset({KEY_LABEL, PARENT_NAME_LABEL})
"""Labels of hosts of which a pod for which a slice is made requires one, with a value of its own."""


def reach_of(affinity: Iterable[Sequence[Requirement]], *, kept_together: bool) -> Reach:
    """Return the hosts that a pod may come to, by the terms of its required node affinity.

    `kept_together`: whether something else than these keeps all pods of its Job or group on one slice.

    | each term requires                                | hosts                          |
    |---------------------------------------------------|--------------------------------|
    | a key, or the name of a Job, of its own; or no    | its own                        |
    | provisioner, in some                              |                                |
    | no provisioner                                    | static ones alone              |
    | neither, in one at least; there is none           | any, or those of any one slice |
    """
    kinds = {_kind(term) for term in affinity}
    if kinds and kinds <= {Reach.OWN, Reach.STATIC}:
        return Reach.OWN if Reach.OWN in kinds else Reach.STATIC
    return Reach.ONE_SLICE if kept_together else Reach.ANY


def _kind(term: Sequence[Requirement]) -> Reach:
    if any((each.key, each.operator) == (OWNER_LABEL, "DoesNotExist") for each in term):
        return Reach.STATIC
    return Reach.OWN if any(each.key in _OWN and each.operator == "In" for each in term) else Reach.ANY


def unjudged(leader: WaitingLeader, request: TemplateRequest) -> WaitingLeader:
    """Return a leader as it is made of a template where nothing pins pods."""
    selected = {key for key, _ in request.node_selector}
    exclusive = request.exclusive_nodes or request.exclusive_topology == NODE_POOL
    kept_together = exclusive or not OF_ONE_SLICE.isdisjoint(selected)
    return replace(leader, reach=reach_of((), kept_together=kept_together))
