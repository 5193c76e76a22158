"""What becomes of a pod on the API server, tried without storing it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.infra.admission.case import Case
from tests.infra.admission.pods import gates_of, terms_of
from tests.kubernetes.cluster import Cluster, Json, Reply

DRY_RUN = "/api/v1/namespaces/{}/pods?dryRun=All&fieldValidation=Strict"
Placement = tuple[Any, Any]
"""What a pod requires of its node, and what it selects."""


def created(cluster: Cluster, pod: Json) -> Reply:
    return cluster.post(DRY_RUN.format(pod["metadata"]["namespace"]), pod)


def placement_of(pod: Json) -> Placement:
    return terms_of(pod), pod["spec"].get("nodeSelector")


@dataclass(frozen=True)
class Outcome:
    """What becomes of a pod when nothing judges it, and when it is judged."""

    unjudged: Reply
    judged: Reply

    def check(self, case: Case) -> None:
        """Fail unless the pod runs where its case says, and nothing else of it changes."""
        if case.refused:
            assert case.refused in self.unjudged.refused
            assert case.refused in self.judged.refused
            return
        assert self.judged.object, self.judged.refused
        assert self.unjudged.object, self.unjudged.refused
        assert terms_of(self.judged.object) == (case.required if case.hosts else terms_of(self.unjudged.object))
        selected = self.unjudged.object["spec"].get("nodeSelector") if case.selector is None else case.selector
        assert self.judged.object["spec"].get("nodeSelector") == selected
        assert gates_of(self.judged.object) == case.gates
        assert apart_from_placement(self.judged.object) == apart_from_placement(self.unjudged.object)


def apart_from_placement(pod: Json) -> Json:
    """Return what is the same each time that the API server creates this pod."""
    text = json.dumps(pod).replace(pod["metadata"]["uid"], "UID").replace(pod["metadata"]["name"], "NAME")
    result: Json = json.loads(text)
    for volatile in ("creationTimestamp", "managedFields"):
        result["metadata"].pop(volatile, None)
    for placement in ("nodeSelector", "affinity", "schedulingGates"):
        result["spec"].pop(placement, None)
    result["status"].pop("conditions", None)  # whether it has a gate
    return result
