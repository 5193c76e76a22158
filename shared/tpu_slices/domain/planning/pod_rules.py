"""Checks rules about other pods against the fresh hosts of one slice, on which none of them runs yet. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tpu_slices.domain.model.facts import EXCLUSIVE, GROUP_EXCLUSIVE, PodRule, PodRuleKind, TemplateRequest
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.planning.host_labels import HOSTNAME, NODE_POOL, is_slicing
from tpu_slices.domain.planning.obstacles import Obstacle, does_not_fit

_FRESH = frozenset({HOSTNAME, NODE_POOL})
"""Labels whose values on the hosts of a slice no other node has."""


def pod_rules_hold(
    request: TemplateRequest, kind: OwnerKind, hosts: int, labels: Collection[str]
) -> Iterator[Obstacle]:
    """Yield which rules cannot hold on hosts with these labels; what depends on pods elsewhere is taken to hold.

    | rule                     | cannot hold                                                                    |
    |--------------------------|--------------------------------------------------------------------------------|
    | exclusive topology       | by a label that the hosts do not have; by host, if there are several hosts; by |
    |                          | host or node pool, if the leader of a group is on none of the hosts            |
    | pod affinity             | by a label that the hosts do not have; with pods of others alone, by host or   |
    |                          | node pool: there are none                                                      |
    | pod anti-affinity        | with its own pods by anything but the host, if there are several hosts         |
    | topology spread          | by a label that the hosts do not have                                          |
    """
    annotation = GROUP_EXCLUSIVE if kind is OwnerKind.LEADER_WORKER_SET else EXCLUSIVE
    if request.leader_apart:
        yield from _beside_leader(request.exclusive_topology, labels)
    else:
        yield from _exclusively(annotation, request.exclusive_topology, hosts, labels)
    for rule in request.pod_rules:
        why = _why_not(rule, hosts, labels)
        if why:
            yield does_not_fit(f"{rule.kind}: its topologyKey {rule.topology_key} {why}")


def _exclusively(annotation: str, key: str, hosts: int, labels: Collection[str]) -> Iterator[Obstacle]:
    if key and key not in labels:
        what = " of super-, sub- or dynamic slicing" if is_slicing(key) else ""
        yield does_not_fit(
            f"{annotation}: {key} is a label{what} that the hosts of this slice do not have, so that no pod could be "
            f"placed: set it to {NODE_POOL}"
        )
    elif key == HOSTNAME and hosts > 1:
        yield does_not_fit(
            f"{annotation}: by {key} all pods of a slice are placed on one host, and this slice has {hosts}: set it to "
            f"{NODE_POOL}"
        )


def _beside_leader(key: str, labels: Collection[str]) -> Iterator[Obstacle]:
    """Yield why workers could not run where their leader runs, which is no host of the slice."""
    if key and (key not in labels or key in _FRESH):
        yield does_not_fit(
            f"{GROUP_EXCLUSIVE}: workers are placed by {key} where their leader runs, which requests no google.com/tpu "
            "and is on none of the hosts of this slice: remove the annotation, or give leaderTemplate the chips and "
            "selectors of the workers"
        )


def _why_not(rule: PodRule, hosts: int, labels: Collection[str]) -> str:
    if rule.kind is PodRuleKind.ANTI_AFFINITY:
        apart = rule.selects_itself and rule.topology_key != HOSTNAME and rule.topology_key in labels and hosts > 1
        return f"keeps the pods of one slice apart, whose {hosts} hosts share it: use {HOSTNAME}" if apart else ""
    if rule.topology_key not in labels:
        return "is a label that the hosts of this slice do not have: remove the rule, or prefer it only"
    if rule.kind is PodRuleKind.AFFINITY and rule.topology_key in _FRESH and not rule.selects_itself:
        return "demands pods of others on hosts that are made for these alone: remove the rule, or prefer it only"
    return ""
