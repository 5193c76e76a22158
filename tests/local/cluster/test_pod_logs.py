"""The output of `kubectl logs` without containers."""

from typing import Any

import pytest

from infra.local.cluster.errors import ApiError
from tests.local.cluster.served import Served
from tests.local.cluster.world import PODS, World, pod

LOG = f"{PODS}/one/log"


def world(*names: str, node: str = "host") -> World:
    made = World()
    wanted = pod(node=node)
    wanted["spec"]["containers"] = [{"name": name, "image": "python:3.12"} for name in names or ("main",)]
    made.call("POST", PODS, wanted)
    return made


def said(made: World, **params: str) -> str:
    answer = made.answer("GET", LOG, **params)
    assert isinstance(answer.body, bytes)
    assert answer.media_type == "text/plain"
    return answer.body.decode()


def test_a_pod_on_a_node_says_that_nothing_runs() -> None:
    sentence = 'this local cluster runs no containers: "main" of pod "one" has no output\n'
    assert said(world()) == sentence
    assert said(world(), follow="true", tailLines="5", container="main") == sentence
    assert said(world(), timestamps="true") == f"2026-01-01T00:00:00Z {sentence}"
    assert said(world(), limitBytes="4") == "this"
    assert said(world(), tailLines="0") == ""


def test_a_pod_without_a_node_says_nothing() -> None:
    assert said(world(node="")) == ""


@pytest.mark.parametrize(
    ("params", "code", "message"),
    [
        ({"container": "other"}, 400, "container other is not valid for pod one"),
        ({}, 400, "a container name must be specified for pod one, choose one of: [a b]"),
        ({"container": "a", "tailLines": "-1"}, 422, "tailLines: Invalid value: -1"),
        ({"container": "a", "limitBytes": "0"}, 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ({"container": "a", "tailLines": "all"}, 400, 'parsing "all"'),
        ({"container": "a", "sinceSeconds": "5", "sinceTime": "2026-01-01T00:00:00Z"}, 422, "at most one of"),
        ({"container": "a", "previous": "true"}, 400, 'previous terminated container "a" in pod "one" not found'),
    ],
)
def test_what_cannot_be_shown_is_refused(params: dict[str, Any], code: int, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        world("a", "b").answer("GET", LOG, **params)
    assert refused.value.code == code
    assert message in refused.value.message


def test_an_unknown_pod_has_no_log() -> None:
    with pytest.raises(ApiError) as refused:
        World().answer("GET", LOG)
    assert refused.value.code == 404


@pytest.mark.emulators
@pytest.mark.enable_socket
@pytest.mark.timeout(60)
def test_kubectl_shows_it(client: Served) -> None:
    namespace = client.namespace()
    client.kubectl("create", "-f-", stdin={"apiVersion": "v1", "kind": "Pod"} | pod(node="h", namespace=namespace))
    for flags in ((), ("-f",), ("--tail=3",), ("-c", "main")):
        shown = client.kubectl("logs", "one", "-n", namespace, *flags)
        assert (shown.code, "runs no containers" in shown.out) == (0, True), shown
    assert "container other is not valid" in client.kubectl("logs", "one", "-n", namespace, "-c", "other").error
    assert "NotFound" in client.kubectl("logs", "two", "-n", namespace).error
