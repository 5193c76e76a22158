"""Which pod templates of workloads have the label of a gang on the API server, tried without storing them."""

from __future__ import annotations

from collections.abc import Mapping

from tests.cluster.asking import Answer
from tests.infra.admission.workloads import ASKED, Asked, labelled
from tests.kubernetes.cluster import Cluster, Json
from tpu_slices.domain.model.gangs import GANG

LISTS = {
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "LeaderWorkerSet": "/apis/leaderworkerset.x-k8s.io/v1/namespaces/{}/leaderworkersets",
}
REFUSED, CONFLICT = 300, 409


def stored(cluster: Cluster, workload: Json) -> set[str] | None:
    """Return which templates of a new workload would have the label; None: it is refused."""
    reply = cluster.post(f"{LISTS[workload['kind']].format('default')}?dryRun=All", workload)
    return None if reply.object is None else labelled(reply.object)


def create_the_old_ones(cluster: Cluster, namespace: str) -> None:
    """Create the workloads of the table that exist, as nothing judges them."""
    for number, case in enumerate(ASKED):
        if case.old is not None:
            made = cluster.post(_list(case, namespace), _named(case.old, namespace, number))
            assert made.object, made.refused


def _list(case: Asked, namespace: str) -> str:
    return LISTS[case.workload["kind"]].format(namespace)


def _named(workload: Json, namespace: str, number: int) -> Json:
    return {**workload, "metadata": {**workload["metadata"], "namespace": namespace, "name": f"case-{number}"}}


def outcomes(cluster: Cluster, settings: Mapping[str, str], namespace: str) -> dict[str, set[str] | str]:
    """Return the outcome of each case of these settings, by its name."""
    of_these = ((number, case) for number, case in enumerate(ASKED) if case.settings == settings)
    return {case.name: _outcome(cluster, case, namespace, number) for number, case in of_these}


def _outcome(cluster: Cluster, case: Asked, namespace: str, number: int) -> set[str] | str:
    """Return which templates of a workload would have the label, or why it is refused."""
    where, wanted = _list(case, namespace), _named(case.workload, namespace, number)
    if case.old is None:
        answer = cluster.api.post(f"{where}?dryRun=All", wanted)
    else:
        answers = (replaced(cluster, f"{where}/case-{number}", wanted) for _ in range(20))
        answer = next(each for each in answers if each.code != CONFLICT)
    return labelled(answer.body) if answer.code < REFUSED else str(answer.body["message"])


def replaced(cluster: Cluster, where: str, wanted: Json) -> Answer:
    """Return the answer to a workload that is to take the place of the one at a path, tried without storing it."""
    now = cluster.api.read(where)
    metadata = {**wanted["metadata"], "resourceVersion": now["metadata"]["resourceVersion"]}
    spec = _as_selected(wanted["spec"], now["spec"]) if wanted["kind"] == "Job" else wanted["spec"]
    return cluster.api.put(f"{where}?dryRun=All", {**wanted, "metadata": metadata, "spec": spec})


def _as_selected(spec: Json, now: Json) -> Json:
    """Return the spec of a Job with its selector, and the labels that this asks for, which the API server made."""
    own = {key: value for key, value in now["template"]["metadata"]["labels"].items() if key != GANG}
    metadata = spec["template"].get("metadata", {})
    metadata = {**metadata, "labels": {**metadata.get("labels", {}), **own}}
    return {**spec, "selector": now["selector"], "template": {**spec["template"], "metadata": metadata}}
