"""Pods of gangs in the golden table: those that have a gate once they are judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.infra.admission.case import OWN, Case, Hosts, jobset, left_alone, static
from tests.infra.admission.pods import (
    COMPLETION_INDEX,
    GROUP,
    SELECTOR,
    UID,
    a_container,
    a_pod,
    group_together,
    of_group,
    of_job,
    of_jobset,
    together,
)
from tests.infra.admission.settings import OPTED_OUT, SERVE
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.planning.host_labels import GKE_PROVISIONERS, GROUP_KEYS, TOPOLOGY
from tpu_slices.wire.leader_worker_sets import LEADER_HAS_CHIPS
from tpu_slices.wire.workloads import BY_NODE_SELECTOR

LABEL = {GANG: "true"}
GATES: dict[str, Any] = {"gates": (GANG,)}
OTHER = "kueue.x-k8s.io/topology"


def of_jobsets() -> Iterator[Case]:
    """Yield pods of JobSets."""
    yield jobset("of a gang", of_jobset(labels=LABEL), **GATES)
    yield jobset("labelled as of no gang", of_jobset(labels={GANG: "false"}))
    follower = {**LABEL, COMPLETION_INDEX: "3"}
    yield jobset("of a gang, a follower", of_jobset(labels=follower), **GATES)
    kept: Any = {"annotations": together()}
    yield jobset("of a gang, a leader that others follow", of_jobset(labels=LABEL, **kept), Hosts.STATIC, **GATES)
    yield jobset("of a gang, a follower that waits for its leader", of_jobset(labels=follower, **kept), Hosts.STATIC)
    labelled = {"annotations": {**together(), BY_NODE_SELECTOR: "true"}}
    on_labelled = of_jobset(labels=follower, **labelled)
    yield jobset("of a gang, a follower on labelled nodes", on_labelled, Hosts.STATIC, **GATES)
    by_zone = of_jobset(labels=follower, annotations=together("topology.kubernetes.io/zone"))
    yield jobset("of a gang, a follower kept together by zone", by_zone, **GATES)
    by_annotation = of_jobset(
        labels={**LABEL, COMPLETION_INDEX: "0"}, annotations={**together(), COMPLETION_INDEX: "3"}
    )
    yield jobset("of a gang, a follower by annotation", by_annotation, Hosts.STATIC)
    gated = of_jobset(labels=LABEL, schedulingGates=[{"name": GANG}])
    yield jobset("of a gang, with the gate of its template", gated, **GATES)
    yield jobset("with the gate of its template alone", of_jobset(schedulingGates=[{"name": GANG}]), **GATES)
    others = of_jobset(labels=LABEL, schedulingGates=[{"name": OTHER}])
    yield jobset("of a gang, with a gate of another", others, gates=(OTHER, GANG))


def of_jobs_and_groups() -> Iterator[Case]:
    """Yield pods of Jobs and of LeaderWorkerSets."""
    yield Case(name="of a Job that is a gang", pod=of_job(labels=LABEL), hosts=OWN, keys=(UID,), **GATES)
    of_one: Any = {"hosts": OWN, "keys": (GROUP,)}
    kept: Any = {"hosts": (*OWN, Hosts.STATIC), "keys": (GROUP,)}
    early = of_group(labels={**LABEL, "leaderworkerset.sigs.k8s.io/group-key": None})
    yield Case(name="of a gang, a leader that is not labelled yet", pod=early, hosts=(Hosts.GROUPS,), **GATES)
    yield Case(name="of a gang, a group's leader", pod=of_group(labels=LABEL), **of_one, **GATES)
    worker = {**LABEL, "leaderworkerset.sigs.k8s.io/worker-index": "1"}
    yield Case(name="of a gang, a group's worker", pod=of_group(labels=worker), **of_one, **GATES)
    exclusive = {**group_together(), LEADER_HAS_CHIPS: "true"}
    leads = of_group(labels=LABEL, annotations=group_together())
    yield Case(name="of a gang, a group's leader that others follow", pod=leads, **kept, **GATES)
    follows = of_group(labels=worker, annotations=exclusive)
    yield Case(name="of a gang, a worker that waits for its leader", pod=follows, **kept)
    early_worker = {**worker, "leaderworkerset.sigs.k8s.io/worker-index": None}
    unnumbered = of_group(labels=early_worker, annotations=exclusive)
    yield Case(name="of a gang, a worker that is not numbered yet", pod=unnumbered, **kept)
    leads_itself = of_group(labels=worker, annotations=group_together())
    yield Case(name="of a gang, a worker whose leader has no chips", pod=leads_itself, **kept, **GATES)


def of_none() -> Iterator[Case]:
    """Yield pods with the label that no slice is made for, or that are slices' only ones."""
    yield static("of a gang, opted out", of_jobset(labels={**LABEL, OPTED_OUT: "true"}))
    yield static(
        "of a gang, with hosts of GKE's",
        of_jobset(labels=LABEL, nodeSelector={**SELECTOR, next(iter(GKE_PROVISIONERS)): "x"}),
    )
    yield static("of no kind, with the label of a gang", a_pod(labels=LABEL))
    nodes = of_jobset(labels=LABEL, nodeSelector={**SELECTOR, min(GROUP_KEYS): "some"})
    yield left_alone("of a gang, that selects a TPUNodeGroup", nodes)
    whole = a_pod(a_container(chips="8"), labels=LABEL, nodeSelector={**SELECTOR, TOPOLOGY: "2x4"})
    by_itself: Any = {"hosts": (Hosts.KEYED, Hosts.STATIC), "keys": ("pod-.pod",), "settings": SERVE}
    yield Case(name="by itself, with the label of a gang", pod=whole, **by_itself)


HELD = [*of_jobsets(), *of_jobs_and_groups(), *of_none()]
