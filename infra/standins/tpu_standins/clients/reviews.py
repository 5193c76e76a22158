"""Webhooks as functions of a request, and the AdmissionReviews around them (pure)."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

import orjson

Json = dict[str, Any]
Decide = Callable[[Json], Json | None]
"""From a request to the object as it is to be, or None where it only judges it. Raises Refused."""

_UNREADABLE = (TypeError, KeyError, ValueError, AttributeError)
"""What an object raises whose fields have other types than the schema's, which is checked after the webhooks."""


class Refused(Exception):
    """A request that a webhook refuses; code and reason as in metav1.Status."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message


def submitted(request: Json) -> Json:
    """Return a copy of the new object, whose namespace may be known from the request only."""
    new: Json = orjson.loads(orjson.dumps(request["object"]))
    if request.get("namespace"):
        new["metadata"].setdefault("namespace", request["namespace"])
    return new


def review(decide: Decide, asked: Json) -> Json:
    """Return the AdmissionReview with the webhook's response."""
    request = asked["request"]
    try:
        wanted = decide(request)
    except Refused as refusal:
        response = _denied(refusal)
    except _UNREADABLE as error:
        response = _denied(Refused(400, "BadRequest", f"the object cannot be read: {type(error).__name__}: {error}"))
    else:
        response = {"allowed": True} | ({} if wanted is None else _patched(request["object"], wanted))
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"]} | response,
    }


def _denied(refusal: Refused) -> Json:
    status = {"code": refusal.code, "reason": refusal.reason, "message": refusal.message}
    return {"allowed": False, "status": status}


def _patched(before: Json, after: Json) -> Json:
    """Return the JSON patch of what differs: whole fields of the object, and of its metadata."""
    metadata = _differing("/metadata", before.get("metadata") or {}, after.get("metadata") or {})
    others = _differing("", before, after | {"metadata": before.get("metadata")})
    operations = [{"op": "add", "path": path, "value": value} for path, value in {**metadata, **others}.items()]
    if not operations:
        return {}
    return {"patchType": "JSONPatch", "patch": base64.b64encode(orjson.dumps(operations)).decode()}


def _differing(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{path}/{key}": value for key, value in after.items() if before.get(key) != value}
