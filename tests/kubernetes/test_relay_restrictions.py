"""The admission policies for the relay's writes, on a real API server: what it does is admitted, and nothing beyond it.

Every request is a dry run with the relay's own token, so that each is of the same objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml

from infra.kubernetes.overlay import NAMESPACE, account_of
from infra.local.relay_account import manifests
from relay import events, translate
from relay.hosts import closing as cordons
from relay.hosts.closing import CLOSED
from relay.notices import legacy_provisioner
from relay.notices.gating import ANNOTATED, POD_OF_A_GANG
from relay.notices.pinning import POD
from relay.objects import Reference
from tests.builders import NOW
from tests.cluster.accounts import token_of
from tests.cluster.asking import Answer, Api, done, path
from tests.infra.relay.manifests import SHARED
from tests.kubernetes.cluster import Cluster, Json
from tests.relay.test_events import update
from tpu_slices.domain.model.reasons import OwnerReason
from tpu_slices.domain.planning.host_labels import JOBSET_TAINT, NAMESPACED_JOB
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.planning.pool_labels import ANY_NAMESPACE_LABEL, PARENT_NAMESPACE_LABEL
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

CLUSTER = "demo"
OURS = {
    "google.com/nodepool-manager": "tpu-provisioner",
    "google.com/tpu-slice-id": "tpu-llama-0-aaaaaaaaaaaaa",
    "google.com/tpu-slice-attempt": "1",
    "google.com/tpu-slice-owner-uid": "u-1",
}
EXCLUSIVE = {
    **OURS,
    "google.com/tpu-slice-exclusive-nodes": "true",
    "google.com/tpu-provisioner-parent-namespace": "research",
    "google.com/tpu-provisioner-parent-name": "llama-workers-0",
}
OF_ANY = {**OURS, ANY_NAMESPACE_LABEL: "true", KEY_LABEL: "tpu-llama-0-aaaaaaaaaaaaa-1"}
OTHER_TAINT = {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}
JOB = "research_llama-workers-0"


def node(labels: Json, *taints: Json, closed: bool = False, **annotations: str) -> Json:
    metadata = {"labels": labels, "annotations": {"volumes": "attached", **annotations}, "finalizers": ["team/keep"]}
    return {"metadata": metadata, "spec": {"unschedulable": closed, "taints": [OTHER_TAINT, *taints]}}


NODES = {
    "open": node(OURS),
    "closed": node({**OURS, KEY_LABEL: "u-1.j0"}, closed=True, **{CLOSED: "1"}),
    "cordoned": node(OURS, closed=True),
    "mobile": node({**OF_ANY, PARENT_NAMESPACE_LABEL: "research"}, closed=True, **{CLOSED: "1"}),
    "anew": node(OF_ANY, closed=True, **{CLOSED: "1"}),
    "mobile-open": node(OF_ANY),
    "exclusive": node(EXCLUSIVE),
    "labeled": node({**EXCLUSIVE, NAMESPACED_JOB: JOB}, dict(translate.TAINT)),
    "legacy": node({"google.com/nodepool-manager": "tpu-provisioner"}),
    "strangers": node({"team": "a"}),
}
"""Of nodes, whose they are, and what was done to them."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A patch of a node, made from the node as it is; `refused` is in the message of the refusal, if it is one."""

    name: str
    of: str
    patch: Callable[[Json], Any]
    refused: str = ""


def close(found: Json) -> Any:
    """Return the relay's own patch that closes a node; only whether it is a host is not asked here."""
    return cordons._patch(host(found), 2)


def reopen(found: Json) -> Any:
    return cordons._patch(host(found), None)


def reopen_with_key(found: Json) -> Any:
    return cordons._patch(host(found), None, "u-2.j0")


def hand_on(found: Json) -> Any:
    """Return the relay's own patch that opens a node for another namespace."""
    return cordons._patch(host(found), None, "vision/u-2.j0")


def close_with_key(found: Json) -> Any:
    patch = close(found)
    return {**patch, "metadata": {**patch["metadata"], "labels": {KEY_LABEL: "u-2.j0"}}}


def host(found: Json) -> Any:
    """Return the node as a host; a stranger's as if it were one."""
    labels = {**found["metadata"]["labels"], **OURS}
    return translate.host({**found, "metadata": {**found["metadata"], "labels": labels}})


def labelled(**changes: str | None) -> Callable[[Json], Any]:
    return lambda _: {"metadata": {"labels": changes}}


def annotated(**changes: str | None) -> Callable[[Json], Any]:
    return lambda _: {"metadata": {"annotations": changes}}


def metadata(**changes: Any) -> Callable[[Json], Any]:
    return lambda _: {"metadata": changes}


def spec(**changes: Any) -> Callable[[Json], Any]:
    return lambda _: {"spec": changes}


def taints(*added: Json, kept: bool = True) -> Callable[[Json], Any]:
    return lambda found: {"spec": {"taints": [*(found["spec"]["taints"] if kept else ()), *added]}}


NOT_OURS = "nodes of slices only"
LABELS, ANNOTATIONS = "Of labels the relay may set", "Of annotations the relay may change"
CORDON, TAINTS, REST = "The relay may cordon", "Of taints the relay may restore", "neither other fields"
TAINT = {"key": JOBSET_TAINT, "value": "true", "effect": "NoSchedule"}

CASES = (
    Case(name="it closes a node", of="open", patch=close),
    Case(name="it closes a node for a later question", of="closed", patch=close),
    Case(name="it closes a node of TPU Provisioner's", of="legacy", patch=close),
    Case(name="it opens a node that it closed", of="closed", patch=reopen),
    Case(name="it opens a node that it closed, with another key", of="closed", patch=reopen_with_key),
    Case(name="it labels a node for its Job, and restores its taint", of="exclusive", patch=translate.missing_labels),
    Case(name="it sets the label alone", of="exclusive", patch=labelled(**{NAMESPACED_JOB: JOB})),
    Case(name="a stranger's node", of="strangers", patch=close, refused=NOT_OURS),
    Case(name="to make a stranger's node one of ours", of="strangers", patch=labelled(**OURS), refused=NOT_OURS),
    Case(name="another label", of="open", patch=labelled(team="b"), refused=LABELS),
    Case(name="another slice", of="open", patch=labelled(**{"google.com/tpu-slice-id": "x"}), refused=LABELS),
    Case(name="a label less", of="open", patch=labelled(**{"google.com/tpu-slice-id": None}), refused=LABELS),
    Case(name="a label for another Job", of="exclusive", patch=labelled(**{NAMESPACED_JOB: "a_b"}), refused=LABELS),
    Case(name="no label for its Job any more", of="labeled", patch=labelled(**{NAMESPACED_JOB: None}), refused=LABELS),
    Case(name="a Job's label on a node for all", of="open", patch=labelled(**{NAMESPACED_JOB: JOB}), refused=LABELS),
    Case(name="it hands a node on to another namespace", of="mobile", patch=hand_on),
    Case(name="it says for which namespace a node is that was made anew", of="anew", patch=hand_on),
    Case(name="a node of one namespace handed on", of="closed", patch=hand_on, refused=LABELS),
    Case(name="a node that is open handed on", of="mobile-open", patch=hand_on, refused=LABELS),
    Case(
        name="a node of one namespace made one of any",
        of="closed",
        patch=labelled(**{ANY_NAMESPACE_LABEL: "true"}),
        refused=LABELS,
    ),
    Case(name="a key on a node that is open", of="open", patch=reopen_with_key, refused=LABELS),
    Case(name="a key on a node while it closes it", of="open", patch=close_with_key, refused=LABELS),
    Case(name="a key on a node that somebody else cordoned", of="cordoned", patch=reopen_with_key, refused=LABELS),
    Case(name="a key on a stranger's node", of="strangers", patch=reopen_with_key, refused=NOT_OURS),
    Case(name="no key any more", of="closed", patch=labelled(**{KEY_LABEL: None}), refused=LABELS),
    Case(name="another annotation", of="open", patch=annotated(team="b"), refused=ANNOTATIONS),
    Case(name="another value of an annotation", of="open", patch=annotated(volumes="none"), refused=ANNOTATIONS),
    Case(name="an annotation less", of="open", patch=annotated(volumes=None), refused=ANNOTATIONS),
    Case(name="a cordon without its annotation", of="open", patch=spec(unschedulable=True), refused=CORDON),
    Case(name="to open another's cordon", of="cordoned", patch=spec(unschedulable=False), refused=CORDON),
    Case(name="to make another's cordon its own", of="cordoned", patch=annotated(**{CLOSED: "1"}), refused=CORDON),
    Case(name="to open another's cordon as if it were its own", of="cordoned", patch=reopen, refused=CORDON),
    Case(name="another taint", of="exclusive", patch=taints({"key": "a", "effect": "NoExecute"}), refused=TAINTS),
    Case(name="a taint less", of="exclusive", patch=taints(TAINT, kept=False), refused=TAINTS),
    Case(name="its taint, evicting", of="exclusive", patch=taints({**TAINT, "effect": "NoExecute"}), refused=TAINTS),
    Case(name="its taint, otherwise", of="exclusive", patch=taints({**TAINT, "value": "false"}), refused=TAINTS),
    Case(name="its taint on a node for all", of="open", patch=taints(TAINT), refused=TAINTS),
    Case(name="a provider's id", of="open", patch=spec(providerID="gce://p/z/other"), refused=REST),
    Case(name="pod addresses", of="open", patch=spec(podCIDR="10.9.0.0/24", podCIDRs=["10.9.0.0/24"]), refused=REST),
    Case(name="a finalizer more", of="open", patch=metadata(finalizers=["team/keep", "team/b"]), refused=REST),
    Case(name="no finalizer", of="open", patch=metadata(finalizers=None), refused=REST),
    Case(
        name="an owner",
        of="open",
        patch=metadata(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"}]),
        refused=REST,
    ),
)  # fmt: skip

OWN = {
    "of a slice": events.event(update(), None),
    "of a Deployment that gets no slice": events.unserved(
        Reference("apps/v1", "Deployment", "research", "serve", "u-2"), OwnerReason.NOT_SERVED, "it is none", NOW, NOW
    ),
    "of another provisioner beside it": legacy_provisioner.warning(
        {"metadata": {"uid": "u-3"}}, legacy_provisioner.TPU_OPERATOR.message, NOW
    ),
}
"""The Events that the relay writes; those on workloads are in their namespaces."""
NAME = "written"
OTHER_COMPONENTS = {
    "reportingComponent": {"reportingComponent": "kubelet"},
    "source": {"source": {"component": "kubelet"}},
    "neither": {"reportingComponent": None, "source": None},
}
MESSAGE = "The relay may write Events of its own only"


def named(event: Mapping[str, Any], name: str = NAME, **changes: Any) -> Json:
    """Return an Event in a namespace that there is."""
    about = {**event["involvedObject"], "namespace": "default"}
    made = {**event, "metadata": {"name": name, "namespace": "default"}, "involvedObject": about, **changes}
    return {key: value for key, value in made.items() if value is not None}


OF_A_SLICE = OWN["of a slice"]
KUBELETS = named(OF_A_SLICE, "kubelets", reportingComponent="kubelet", source={"component": "kubelet"})


@dataclass(frozen=True)
class Stage:
    """The API server asked by the administrator, and by the relay."""

    admin: Api
    relay: Api

    def patched(self, case: Case) -> Answer:
        """Patch the node; once more if somebody has changed it meanwhile."""
        where = path("nodes", name=case.of)
        while True:
            answer = self.relay.patch(where, case.patch(self.admin.read(where)), dryRun="All")
            if answer.code != 409:
                return answer

    def created(self, event: Json) -> Answer:
        return self.relay.post(path("events", event["metadata"]["namespace"]), event, dryRun="All")

    def changed(self, name: str, change: Json) -> Answer:
        return self.relay.patch(path("events", "default", name), change, dryRun="All")

    def is_restricted(self) -> bool:
        """Return whether the policies as they are now, not the roles alone, refuse what they should and no more."""
        if any(self.patched(case).code != 200 for case in CASES if not case.refused):
            return False
        label = next(case for case in CASES if case.refused == LABELS)
        answers = ((self.patched(label), LABELS), (self.created(named(KUBELETS)), MESSAGE))
        refused = all(answer.code == 403 and message in answer.body["message"] for answer, message in answers)
        return refused and not self._creates_a_pod()

    def _creates_a_pod(self) -> bool:
        """Return whether the relay may create a pod; one that it made is deleted."""
        made = self.relay.post(path("pods", NAMESPACE), dict(POD))
        if made.code == 201:
            done(self.admin.delete(path("pods", NAMESPACE, made.body["metadata"]["name"])))
        return made.code != 403


@pytest.fixture(scope="module")
def stage(cluster: Cluster) -> Iterator[Stage]:
    applied = cluster.apply("-f", "-", stdin=yaml.safe_dump_all(manifests(CLUSTER)))
    assert (applied.code, applied.error) == (0, "")
    with closing(Api(cluster.plane.kubeconfig)) as admin:
        for name, body in NODES.items():
            admin.create(path("nodes"), {**body, "metadata": {**body["metadata"], "name": name}})
        for event in (KUBELETS, named(OF_A_SLICE)):
            admin.create(path("events", "default"), event)
        with closing(admin.with_token(token_of(admin, NAMESPACE, account_of(CLUSTER)))) as relay:
            one = Stage(admin, relay)
            until(one.is_restricted, "the policies to take effect")
            yield one
        for name in NODES:
            done(admin.patch(path("nodes", name=name), {"metadata": {"finalizers": None}}))
            done(admin.delete(path("nodes", name=name)))


@pytest.mark.parametrize("case", [case for case in CASES if not case.refused], ids=lambda case: case.name)
def test_what_the_relay_does_to_nodes_is_admitted(case: Case, stage: Stage) -> None:
    assert stage.patched(case).code == 200


@pytest.mark.parametrize("case", [case for case in CASES if case.refused], ids=lambda case: case.name)
def test_it_may_do_nothing_else_to_nodes(case: Case, stage: Stage) -> None:
    answer = stage.patched(case)
    assert answer.refusal == (403, "Forbidden")
    assert case.refused in answer.body["message"]


@pytest.mark.parametrize("case", [case for case in CASES if case.refused], ids=lambda case: case.name)
def test_others_may(case: Case, stage: Stage) -> None:
    """Without the policies Kubernetes would take each of these requests."""
    assert replace(stage, relay=stage.admin).patched(case).code == 200


@pytest.mark.parametrize("event", OWN.values(), ids=OWN)
def test_the_relay_may_write_its_own_events(event: Json, stage: Stage) -> None:
    where = event["metadata"]["namespace"]
    assert stage.created(event if where == NAMESPACE else named(event, "new")).code == 201
    assert stage.changed(NAME, {"count": 2, "message": "3 of 4 hosts are usable."}).code == 200


@pytest.mark.parametrize("changes", OTHER_COMPONENTS.values(), ids=OTHER_COMPONENTS)
def test_it_may_write_no_event_in_anothers_name(changes: Json, stage: Stage) -> None:
    for answer in (stage.created(named(OF_A_SLICE, "new", **changes)), stage.changed(NAME, changes)):
        assert answer.refusal == (403, "Forbidden")
        assert MESSAGE in answer.body["message"]


def test_it_may_change_no_event_of_anothers_nor_make_it_its_own(stage: Stage) -> None:
    own = {key: OF_A_SLICE[key] for key in ("reportingComponent", "source")}
    for change in ({"message": "All is well."}, {"message": "All is well.", **own}):
        answer = stage.changed("kubelets", change)
        assert answer.refusal == (403, "Forbidden")
        assert MESSAGE in answer.body["message"]


def test_it_may_try_a_pod_and_create_none(stage: Stage) -> None:
    pods = path("pods", NAMESPACE)
    tried = until(lambda: stage.relay.post(pods, dict(POD), dryRun="All"), "an answer")
    assert tried.code == 201
    refused = stage.relay.post(pods, dict(POD))
    assert refused.refusal == (403, "Forbidden")
    assert "The relay may try what becomes of a pod, and create none" in refused.body["message"]


def test_it_may_try_a_jobset_and_create_none(stage: Stage) -> None:
    jobsets = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{NAMESPACE}/jobsets"
    tried = until(lambda: stage.relay.post(jobsets, dict(ANNOTATED), dryRun="All"), "an answer")
    assert tried.code == 201, tried.body
    refused = stage.relay.post(jobsets, dict(ANNOTATED))
    assert refused.refusal == (403, "Forbidden")
    assert "The relay may try what becomes of a JobSet, and create none" in refused.body["message"]


def test_it_may_try_a_pod_of_a_gang(stage: Stage) -> None:
    tried = until(lambda: stage.relay.post(path("pods", NAMESPACE), dict(POD_OF_A_GANG), dryRun="All"), "an answer")
    assert tried.code == 201, tried.body


def test_kubernetes_has_nothing_to_say_of_the_expressions(stage: Stage) -> None:
    """It checks their types by what it knows of nodes and Events, and writes what it finds into their status."""
    names = [each["metadata"]["name"] for each in SHARED if each["kind"] == "ValidatingAdmissionPolicy"]
    root = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"

    def status(name: str) -> Json:
        found: Json = stage.admin.read(f"{root}/{name}").get("status", {})
        return found

    until(lambda: all("typeChecking" in status(name) for name in names), "the check of types")
    assert [status(name)["typeChecking"] for name in names] == [{}] * len(names)
