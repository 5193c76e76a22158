"""What the webhook answers to the API server."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from relay.webhook.placing import Options
from relay.webhook.reviews import answer
from tests.infra.admission.pods import IDLE, Json, a_pod, of_jobset
from tpu_slices.domain.planning.keys import KEY_LABEL


def asked(obj: Any, **request: Any) -> bytes:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    given = {"uid": "7", "operation": "CREATE", "kind": kind, "namespace": "team", "object": obj, **request}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": given}).encode()


BARE = json.dumps({"request": json.loads(asked({}))["request"]}).encode()
"""Without apiVersion and kind."""


def answered(body: bytes) -> Json:
    review: Json = json.loads(answer(body, Options()))
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: Json = review["response"]
    assert response["uid"] == "7"
    return response


def operations(response: Json) -> list[Json]:
    assert response["allowed"]
    assert response["patchType"] == "JSONPatch"
    patch: list[Json] = json.loads(base64.b64decode(response["patch"]))
    return patch


def test_a_pod_with_chips_is_placed() -> None:
    *_, last = operations(answered(asked(of_jobset())))
    assert KEY_LABEL in json.dumps(last["value"])


def test_a_pod_whose_namespace_only_the_request_names_is_placed_in_that() -> None:
    pod = of_jobset()
    del pod["metadata"]["namespace"]
    *_, last = operations(answered(asked(pod)))
    assert '"team"' in json.dumps(last["value"])


def test_a_pod_without_chips_is_left_as_it_is() -> None:
    assert answered(asked(a_pod(IDLE))) == {"uid": "7", "allowed": True}


@pytest.mark.parametrize(
    "request_of",
    [
        {"operation": "UPDATE"},
        {"operation": "DELETE", "object": None},
        {"operation": "CONNECT", "subResource": "exec"},
        {"subResource": "binding"},
        {"kind": {"group": "batch", "version": "v1", "kind": "Job"}},
    ],
    ids=str,
)
def test_what_creates_no_pod_is_allowed(request_of: Json) -> None:
    assert answered(asked(of_jobset(), **request_of)) == {"uid": "7", "allowed": True}


@pytest.mark.parametrize("obj", [None, {}, {"metadata": {}}, {"metadata": {}, "spec": {"containers": ["x"]}}], ids=str)
def test_a_pod_that_cannot_be_read_is_refused_and_its_owner_is_told_why(obj: Any) -> None:
    response = answered(asked(obj))
    assert not response["allowed"]
    assert response["status"]["message"].startswith("Where this pod may run cannot be told, as it cannot be read: ")


@pytest.mark.parametrize(
    "body", [b"", b"no JSON", b"[]", b"{}", b'{"request": null}', b'{"request": {"uid": "7"}}', BARE]
)
def test_what_is_no_review_is_an_error(body: bytes) -> None:
    with pytest.raises(ValueError):
        answer(body, Options())
