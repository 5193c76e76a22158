"""Asks JobSet's webhooks as an API server does."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from infra.local.clients.objects import Object, copied
from infra.local.clients.reviews import review
from infra.local.jobset.manifests import WEBHOOKS
from infra.local.jobset.pods import Cluster
from tests.local.clients.fake_objects import FakeObjects


@dataclass(frozen=True)
class Answer:
    """What a webhook answers: whether the object is allowed and as what, or how it is refused."""

    allowed: bool
    object: Object
    code: int = 0
    reason: str = ""
    message: str = ""


def ask(path: str, obj: Object, cluster: Cluster | None = None, **request: Any) -> Answer:
    """Ask one webhook."""
    body = {"uid": "review-1", "operation": "CREATE", "namespace": "default", "object": obj} | request
    answer = review(partial(WEBHOOKS[path], cluster or FakeObjects()), {"request": body})
    assert (answer["kind"], answer["response"]["uid"]) == ("AdmissionReview", "review-1")
    response = answer["response"]
    if not response["allowed"]:
        return Answer(allowed=False, object=obj, **response["status"])
    return Answer(allowed=True, object=_patched(obj, response))


def _patched(obj: Object, response: Object) -> Object:
    if "patch" not in response:
        return obj
    assert response["patchType"] == "JSONPatch"
    new = copied(obj)
    for operation in orjson.loads(base64.b64decode(response["patch"])):
        assert operation["op"] == "add"
        *parents, last = operation["path"].strip("/").split("/")
        target = new
        for parent in parents:
            target = target[parent]
        target[last] = operation["value"]
    return new


def create(jobset: Object) -> Answer:
    """Ask the webhooks of a new JobSet, first the one that completes it."""
    completed = ask("/mutate-jobset", jobset)
    return ask("/validate-jobset", completed.object) if completed.allowed else completed


def created(jobset: Object) -> Object:
    answer = create(jobset)
    assert answer.allowed, answer.message
    return answer.object


def update(old: Object, new: Object) -> Answer:
    """Ask the webhooks of a changed JobSet, in the same order."""
    completed = ask("/mutate-jobset", new, operation="UPDATE", oldObject=old)
    return ask("/validate-jobset", completed.object, operation="UPDATE", oldObject=old)
