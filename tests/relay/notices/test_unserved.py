"""Owners of pods that get no slice are told so, by the text of `slices plan`, unless somebody helps them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from relay.notices.unserved import AGAIN_AFTER, HELP_WITHIN, TOLD_AFTER
from relay.notices.unserved_pod import unserved
from relay.objects import Aside, Bookmarked, Failed, Ticked
from tests.examples.answers import REFUSED, answer_of
from tests.relay.notices.owners import SECOND, Told, claiming, without_chips
from tests.relay.objects import (
    OPTED_OUT,
    Json,
    group_pod,
    job,
    job_of_one_pod,
    job_pod,
    leader_worker_set,
    only_pod,
    pod,
)
from tests.relay.watched import START
from tpu_slices.domain.model.vendors import COMPUTE_ENGINE
from tpu_slices.ports.errors import Temporary


def controlled(number: int, kind: str, name: str, api_version: str = "apps/v1") -> Json:
    """Return a pod that cannot be scheduled and is controlled by such an object."""
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"u-{name}", "controller": True}
    made = pod(number, metadata={"name": f"{name}-{number}", "ownerReferences": [owner] if kind != "Pod" else []})
    made["metadata"]["labels"] = {}
    return made


def of_web(number: int, replica_set: str = "web-1") -> Json:
    """Return a pod of the Deployment `web`."""
    return controlled(number, "ReplicaSet", replica_set)


def scale_up(uid: str, at: datetime, **more: Any) -> Json:
    return {
        "metadata": {"creationTimestamp": (at - timedelta(hours=1)).isoformat()},
        "involvedObject": {"kind": "Pod", "uid": uid},
        "lastTimestamp": at.isoformat(),
    } | more


def test_the_pods_of_a_deployment_lead_to_one_event_on_it(told: Told) -> None:
    told.lists(*map(of_web, range(4)), of_web(9, "web-2"))
    (message,) = told.after(TOLD_AFTER).values()
    assert message.startswith("Deployment web gets no slice: its pods come and go one by one")
    (event,) = told.cluster.events.values()
    assert event["involvedObject"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "research",
        "name": "web",
        "uid": "d-1",
    }
    assert (event["type"], event["reason"]) == ("Warning", "NotServed")
    assert client.CoreV1Event.model_validate(event).reason == "NotServed"


def test_in_a_self_managed_cluster_it_names_what_makes_hosts_there() -> None:
    told = Told(COMPUTE_ENGINE)
    told.lists(of_web(0))
    (message,) = told.after(TOLD_AFTER).values()
    assert "create a TPUNodeGroup, and select its hosts with cloud.google.com/tpu-node-group-name" in message


def test_nobody_is_told_before_five_minutes(told: Told) -> None:
    told.lists(of_web(0))
    assert told.after(TOLD_AFTER - SECOND) == {}
    assert [*told.after(SECOND)] == ["Deployment web"]


@pytest.mark.parametrize("again", [True, False], ids=["listed without it", "lost"])
def test_a_pod_that_finds_a_node_in_time_is_not_told_of(told: Told, again: bool) -> None:
    told.lists(of_web(0))
    told.after(TOLD_AFTER - SECOND)
    told.lists() if again else told.loses("pod-0")
    assert told.after(SECOND) == {}


def test_a_pod_that_is_seen_again_has_waited_since_the_first_time(told: Told) -> None:
    told.lists(of_web(0))
    told.after(TOLD_AFTER - SECOND)
    told.sees(of_web(0))
    told.lists(of_web(0))
    assert [*told.after(SECOND)] == ["Deployment web"]


def test_an_event_is_renewed_while_pods_wait_and_not_more_often_than_needed(told: Told) -> None:
    told.lists(of_web(0))
    told.after(TOLD_AFTER)
    told.after(AGAIN_AFTER - SECOND)
    assert told.cluster.posted == 1
    told.after(SECOND)
    assert (told.cluster.posted, len(told.cluster.events)) == (2, 1)
    told.loses("pod-0")
    told.after(AGAIN_AFTER)
    assert told.cluster.posted == 2


SAME = {"deployment", "pod", "ray-cluster", "stateful-set"}


@pytest.mark.parametrize("example", [each for each in REFUSED if each.stem in SAME], ids=lambda example: example.stem)
def test_an_owner_is_told_what_plan_says_of_it(told: Told, example: Path) -> None:
    manifest = yaml.safe_load(example.read_text())
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    made = controlled(0, kind, name, manifest["apiVersion"])
    if kind == "Pod":
        made["metadata"]["name"] = name
    told.lists(made)
    assert told.after(TOLD_AFTER) == {f"{kind} {name}": answer_of(example)[1]}


def test_a_job_and_a_set_are_told_what_their_templates_lack(told: Told) -> None:
    policy = {"subGroupSize": 2}
    told.cluster.workloads = {
        "tune": job(spec={"completionMode": "NonIndexed"}),
        "serve": leader_worker_set(subGroupPolicy=policy),
    }
    plain = job_pod()
    del plain["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]
    told.lists(plain, group_pod())
    said = told.after(TOLD_AFTER)
    assert {of: text.split(":")[0] for of, text in said.items()} == {
        "Job tune": "Job tune gets no slice",
        "LeaderWorkerSet serve": "LeaderWorkerSet serve gets no slice",
    }
    assert {each["involvedObject"]["uid"] for each in told.cluster.events.values()} == {"u-job", "u-lws"}


def test_a_job_of_one_pod_is_told_nothing_until_it_has_several(told: Told) -> None:
    told.cluster.workloads = {"tune": job_of_one_pod()}
    told.lists(only_pod())
    assert told.after(TOLD_AFTER) == {}
    told.cluster.workloads = {"tune": job_of_one_pod(spec={"parallelism": 2})}
    (said,) = told.after(TOLD_AFTER).values()
    assert "a Job needs completions and parallelism 1" in said


@pytest.mark.parametrize(
    "workloads",
    [
        {"tune": job(), "serve": leader_worker_set()},
        {"tune": job(spec={"managedBy": "kueue.x-k8s.io/multikueue", "completionMode": "NonIndexed"})},
        {"serve": leader_worker_set(workerTemplate={"spec": {"containers": "none"}})},
        {},
    ],
    ids=["served", "managed elsewhere", "malformed", "gone"],
)
def test_a_workload_that_is_served_elsewhere_reported_or_gone_is_not_told(
    told: Told, workloads: dict[str, Json]
) -> None:
    told.cluster.workloads = workloads
    told.lists(job_pod(), group_pod())
    assert told.after(TOLD_AFTER) == {}


NOT_TOLD: dict[str, Callable[[Any], object]] = {
    "of a JobSet": lambda made: made["metadata"]["labels"].update({"jobset.sigs.k8s.io/jobset-name": "llama"}),
    "opted out": lambda made: made["metadata"]["labels"].update({OPTED_OUT: "true"}),
    "of a ComputeClass": lambda made: made["spec"]["nodeSelector"].update({"cloud.google.com/compute-class": "tpu"}),
    "of a ProvisioningRequest": lambda made: made["metadata"].update(
        annotations={"autoscaling.x-k8s.io/consume-provisioning-request": "mine"}
    ),
    "scheduled": lambda made: made["spec"].update(nodeName="host"),
    "gated": lambda made: made["spec"].update(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
    "not tried yet": lambda made: made["status"].update(conditions=[]),
    "without chips": without_chips,
    "being deleted": lambda made: made["metadata"].update(deletionTimestamp="2026-11-20T00:00:00Z"),
}


@pytest.mark.parametrize("change", NOT_TOLD.values(), ids=NOT_TOLD.keys())
def test_a_pod_that_is_helped_or_needs_no_help_is_not_looked_at(change: Any) -> None:
    made = of_web(0)
    assert unserved(made) is not None
    change(made)
    assert unserved(made) is None


@pytest.mark.parametrize("which", ["of a ComputeClass", "of a ProvisioningRequest"])
def test_a_pod_that_waits_for_gke_where_there_is_none_is_looked_at(which: str) -> None:
    made = of_web(0)
    NOT_TOLD[which](made)
    assert unserved(made, COMPUTE_ENGINE) is not None


def test_an_owner_for_whom_gke_adds_nodes_is_told_once_that_did_not_help(told: Told) -> None:
    told.lists(*map(of_web, range(3)))
    told.cluster.helped = [scale_up("pod-2", START)]
    assert told.after(HELP_WITHIN - SECOND) == {}
    assert [*told.after(TOLD_AFTER)] == ["Deployment web"]


@pytest.mark.parametrize(
    "event",
    [
        scale_up("pod-0", START - timedelta(hours=1), series={"lastObservedTime": START.isoformat()}),
        scale_up("pod-0", START, lastTimestamp=None, eventTime=START.isoformat().replace("+00:00", ".000000Z")),
    ],
    ids=["a series", "of the newer API"],
)
def test_when_nodes_were_last_added_is_read_from_every_form_of_an_event(told: Told, event: Json) -> None:
    told.lists(of_web(0))
    told.cluster.helped = [event]
    assert told.after(TOLD_AFTER) == {}


def test_nodes_that_are_added_for_another_owner_do_not_matter(told: Told) -> None:
    told.lists(of_web(0))
    told.cluster.helped = [scale_up("pod-9", START)]
    assert [*told.after(TOLD_AFTER)] == ["Deployment web"]


def test_what_cannot_be_looked_up_is_told_later(told: Told) -> None:
    told.lists(of_web(0), controlled(1, "StatefulSet", "db"))
    told.cluster.error = Temporary("refused: 403")
    assert told.after(TOLD_AFTER) == {}
    told.cluster.error = None
    assert told.after(TOLD_AFTER - SECOND) == {}
    assert {*told.after(SECOND)} == {"Deployment web", "StatefulSet db"}


def test_nobody_is_told_while_the_watch_is_interrupted(told: Told) -> None:
    told.lists(of_web(0))
    told.after(SECOND)
    told.puts(Failed(Aside.UNSCHEDULED, "refused"))
    told.puts(Ticked(Aside.UNSCHEDULED))
    assert told.after(TOLD_AFTER) == {}
    told.puts(Bookmarked(Aside.UNSCHEDULED, "9"))
    assert [*told.after(SECOND)] == ["Deployment web"]


def test_the_pods_of_a_replica_set_that_nothing_controls_are_told_of_on_it(told: Told) -> None:
    told.lists(controlled(0, "ReplicaSet", "alone"))
    assert [*told.after(TOLD_AFTER)] == ["ReplicaSet alone"]


TOLERATES: Json = {"tolerations": [{"key": "google.com/tpu", "operator": "Exists"}]}


def test_the_owner_of_pods_that_claim_chips_as_devices_is_told_that_no_slice_is_made_for_claims(told: Told) -> None:
    told.cluster.workloads["serve"] = leader_worker_set("serve")
    told.lists(claiming(of_web(0), **TOLERATES), claiming(group_pod(0)))
    said = told.after(TOLD_AFTER)
    assert sorted(said) == ["Deployment web", "LeaderWorkerSet serve"]
    for message in said.values():
        assert "its pods claim chips as devices (resourceClaims: tpus), by dynamic resource allocation" in message
        assert "request google.com/tpu in resources.limits instead" in message


def test_a_pod_that_requests_chips_and_claims_a_network_device_is_told_of_as_without_the_claim() -> None:
    """As GKE's DRANET for TPU has it: what it claims cannot be looked up here."""
    made = of_web(0)
    made["spec"]["resourceClaims"] = [{"name": "netdev", "resourceClaimTemplateName": "tpu-netdev"}]
    found = unserved(made)
    assert found is not None
    assert found.unserved is None


def test_a_pod_that_claims_devices_and_neither_selects_nor_tolerates_hosts_with_chips_is_not_looked_at() -> None:
    assert unserved(claiming(of_web(0), nodeSelector={})) is None
