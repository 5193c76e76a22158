"""The AdmissionReviews around a webhook: a patch of whole fields, or a refusal."""

from __future__ import annotations

import base64
from typing import Any

import orjson

from tpu_standins.clients.reviews import Decide, Refused, review

Json = dict[str, Any]


def response(decide: Decide) -> Json:
    pod = {"metadata": {"name": "one"}, "spec": {"a": 1}}
    answer = review(decide, {"request": {"uid": "review-1", "object": pod}})
    assert (answer["kind"], answer["response"].pop("uid")) == ("AdmissionReview", "review-1")
    found: Json = answer["response"]
    return found


def test_what_differs_is_patched_as_whole_fields() -> None:
    patched = response(lambda request: request["object"] | {"metadata": {"name": "one", "labels": {}}, "spec": {}})
    assert (patched["allowed"], patched["patchType"]) == (True, "JSONPatch")
    assert orjson.loads(base64.b64decode(patched["patch"])) == [
        {"op": "add", "path": "/metadata/labels", "value": {}},
        {"op": "add", "path": "/spec", "value": {}},
    ]


def test_what_stays_as_it_is_has_no_patch() -> None:
    assert response(lambda request: request["object"]) == {"allowed": True}


def test_a_refusal_has_its_code_reason_and_message() -> None:
    def refuses(_: Json) -> None:
        raise Refused(422, "Invalid", "spec.a: no")

    status = {"code": 422, "reason": "Invalid", "message": "spec.a: no"}
    assert response(refuses) == {"allowed": False, "status": status}


def test_an_object_that_cannot_be_read_is_a_bad_request() -> None:
    refused = response(lambda request: request["object"]["status"])
    assert refused["status"]["code"] == 400
    assert "KeyError" in refused["status"]["message"]
