from typing import Any

import pytest

from infra.local.cluster.controllers.board import Board
from infra.local.cluster.controllers.fit import Fit, Refusal, not_covered
from infra.local.cluster.objects import Object
from tests.local.controllers.cluster import POOL, node, pod_spec

TPU = {"key": "google.com/tpu", "operator": "Exists"}
JOB_KEY = "jobset.sigs.k8s.io/job-key"
UNTOLERATED = "node(s) had untolerated taint {google.com/tpu: present}"
UNSELECTED = "node(s) didn't match Pod's node affinity/selector"
NO_COMPANY = "node(s) didn't match pod affinity rules"
UNWANTED = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"


def pod(
    name: str = "leader", *, key: str = "a", on: str = "", chips: int = 4, namespace: str = "default", **spec: Any
) -> Object:
    bound = {"nodeName": on} if on else {}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {JOB_KEY: key}},
        "spec": pod_spec(chips, tolerations=[TPU]) | bound | spec,
        "status": {"phase": "Pending"},
    }


def term(operator: str, *values: str, **changes: Any) -> Object:
    requirement = {"key": JOB_KEY, "operator": operator} | ({"values": list(values)} if values else {})
    own = {"topologyKey": POOL, "namespaceSelector": {}, "labelSelector": {"matchExpressions": [requirement]}}
    return own | changes


def company(kind: str, *terms: Object) -> Object:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def required(*terms: Object) -> Object:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def expression(operator: str, *values: str, key: str = POOL) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def near(*terms: Object, **spec: Any) -> Object:
    return pod(**company("podAffinity", *terms), **spec)


def far(*terms: Object, **spec: Any) -> Object:
    return pod(**company("podAntiAffinity", *terms), **spec)


EXCLUSIVE = term(
    "Exists",
    labelSelector={
        "matchExpressions": [
            {"key": JOB_KEY, "operator": "Exists"},
            {"key": JOB_KEY, "operator": "NotIn", "values": ["a"]},
        ]
    },
)
OTHER = node("other", pool="pool")
FAR = node("far", pool="far")
ANY: Object = {"tolerations": [{"operator": "Exists"}]}
HOST_PORT: Object = {"containers": [{"name": "main", "ports": [{"containerPort": 1, "hostPort": 1}]}]}

CASES = {
    "a pod that asks for what the host has": (pod(), node("host"), [], None),
    "a cordoned node": (pod(), node("host", unschedulable=True), [], "node(s) were unschedulable"),
    "a cordoned node and a pod that tolerates all": (pod(**ANY), node("host", unschedulable=True), [], None),
    "the TPU taint is not tolerated": (pod(tolerations=[]), node("host"), [], UNTOLERATED),
    "a toleration of another value": (
        pod(tolerations=[{"key": "google.com/tpu", "value": "absent"}]), node("host"), [], UNTOLERATED,
    ),
    "a toleration of the value": (
        pod(tolerations=[{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}]),
        node("host"), [], None,
    ),
    "a toleration of another effect": (
        pod(tolerations=[TPU | {"effect": "NoExecute"}]), node("host"), [], UNTOLERATED,
    ),
    "a preference is no refusal": (
        pod(), node("host", taints=[{"key": "x", "effect": "PreferNoSchedule"}]), [], None,
    ),
    "a selector the node lacks": (pod(nodeSelector={"flavor": "spot"}), node("host"), [], UNSELECTED),
    "affinity In": (pod(**required(expression("In", "pool"))), node("host"), [], None),
    "affinity In another": (pod(**required(expression("In", "far"))), node("host"), [], UNSELECTED),
    "affinity NotIn": (pod(**required(expression("NotIn", "pool"))), node("host"), [], UNSELECTED),
    "affinity NotIn of a missing key": (pod(**required(expression("NotIn", "x", key="y"))), node("host"), [], None),
    "affinity Exists": (pod(**required(expression("Exists", key="y"))), node("host"), [], UNSELECTED),
    "affinity DoesNotExist": (pod(**required(expression("DoesNotExist", key="y"))), node("host"), [], None),
    "affinity Gt": (pod(**required(expression("Gt", "3", key="n"))), node("host") , [], UNSELECTED),
    "affinity terms are alternatives": (
        pod(**required(expression("In", "far"), expression("In", "pool"))), node("host"), [], None,
    ),
    "an empty affinity term picks nothing": (pod(**required({})), node("host"), [], UNSELECTED),
    "affinity to the node's name": (
        pod(**required({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["host"]}]})),
        node("host"), [], None,
    ),
    "a host port that is taken": (
        pod(**HOST_PORT), node("host"), [pod("b", on="host", chips=0, **HOST_PORT)],
        "node(s) didn't have free ports for the requested pod ports",
    ),
    "chips that are in use": (pod(), node("host"), [pod("b", on="host", chips=1)], "Insufficient google.com/tpu"),
    "chips that a finished pod had": (
        pod(), node("host"), [pod("b", on="host") | {"status": {"phase": "Succeeded"}}], None,
    ),
    "chips that the node does not offer yet": (pod(), node("host", chips=0), [], "Insufficient google.com/tpu"),
    "more cpu than there is": (
        pod(containers=[{"name": "main", "resources": {"requests": {"cpu": "111001m"}}}]),
        node("host"), [], "Insufficient cpu",
    ),
    "as many pods as the node takes": (
        pod(chips=0), node("host"), [pod(f"p{n}", on="host", chips=0) for n in range(110)], "Too many pods",
    ),
    "the first of its kind needs no company": (near(term("In", "a")), node("host"), [], None),
    "company that is not there, and not itself": (near(term("In", "b")), node("host"), [], NO_COMPANY),
    "company in the same pool": (near(term("In", "a")), node("host"), [pod("b", on="other")], None),
    "company in another pool": (near(term("In", "a")), node("host"), [pod("b", on="far")], NO_COMPANY),
    "company in a namespace that does not count": (
        near(term("In", "b", namespaceSelector=None), key="a"), node("host"),
        [pod("b", key="b", on="other", namespace="team")], NO_COMPANY,
    ),
    "company without the topology key": (
        near(term("In", "a", topologyKey="rack")), node("host"), [], NO_COMPANY,
    ),
    "another job in the same pool": (far(EXCLUSIVE), node("host"), [pod("b", key="b", on="other")], UNWANTED),
    "another job in another pool": (far(EXCLUSIVE), node("host"), [pod("b", key="b", on="far")], None),
    "its own job in the same pool": (far(EXCLUSIVE), node("host"), [pod("b", on="other")], None),
    "another job that wants to be alone": (
        pod(key="b"), node("host"), [far(EXCLUSIVE, name="b", on="other")], UNWELCOME,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("waiting", "host", "others", "expected"), CASES.values(), ids=CASES.keys())
def test_why_not(waiting: Object, host: Object, others: list[Object], expected: str | None) -> None:
    placed = Board.of([host, OTHER, FAR], others)

    refused = Fit(waiting, placed).why_not(host)
    assert (", ".join(refused.reasons) if refused else None) == expected


@pytest.mark.parametrize(
    ("waiting", "others", "refused"),
    [
        (pod(), [pod("b", on="host")], Refusal(("Insufficient google.com/tpu",))),
        (pod(chips=8), [], Refusal(("Insufficient google.com/tpu",), final=True)),
        (
            pod(chips=8, containers=[{"resources": {"requests": {"cpu": "112", "memory": "1Ti"}}}]),
            [],
            Refusal(("Insufficient cpu", "Insufficient memory"), final=True),
        ),
        (far(EXCLUSIVE), [pod("b", key="b", on="other", chips=0)], Refusal((UNWANTED,))),
        (near(term("In", "b")), [], Refusal((NO_COMPANY,), final=True)),
        (pod(tolerations=[]), [], Refusal((UNTOLERATED,), final=True)),
    ],
    ids=["in use", "more than there is", "more of several", "others are there", "others are not there", "tainted"],
)
def test_a_refusal_is_final_if_no_other_pods_end_would_change_it(
    waiting: Object, others: list[Object], refused: Refusal
) -> None:
    placed = Board.of([node("host"), OTHER, FAR], others)

    assert Fit(waiting, placed).why_not(placed.nodes["host"]) == refused


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ()),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, ()),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, ("topologySpreadConstraints",)),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {}}]}, ("persistentVolumeClaims",)),
        (company("podAffinity", term("Exists", namespaceSelector={"matchLabels": {}})),
         ("namespaceSelector with requirements",)),
    ],
    ids=["nothing", "a preference", "a hard spread", "a claim", "namespaces by label"],
)  # fmt: skip
def test_constraints_that_are_not_judged_are_named(spec: Object, expected: tuple[str, ...]) -> None:
    assert not_covered(pod(**spec)) == expected
