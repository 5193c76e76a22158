"""AdmissionReviews: what the API server asks, and what it is answered (admission.k8s.io/v1). Pure.

| what it asks                       | what it is answered                                                          |
|------------------------------------|------------------------------------------------------------------------------|
| the creation of a pod              | it is allowed, with the patch that places it                                 |
| - one that cannot be read          | it is refused: it could take hosts that are meant for others                 |
| any other                          | it is allowed                                                                |
"""

from __future__ import annotations

import base64
from typing import Any

import orjson

from relay.webhook.placing import Options, patch_of
from relay.webhook.pods import Json, Pod

_BAD_REQUEST = 400
_UNREADABLE = (TypeError, KeyError, ValueError, AttributeError)


def answer(body: bytes, options: Options) -> bytes:
    """Return the AdmissionReview that answers another, both in JSON. Raise ValueError if it is none."""
    review: Any = orjson.loads(body)
    try:
        request: Json = review["request"]
        uid, own = request["uid"], {each: review[each] for each in ("apiVersion", "kind")}
        is_new_pod = (request["operation"], request["kind"]["kind"], request.get("subResource") or "") == _NEW_POD
    except (KeyError, TypeError) as wrong:
        raise ValueError(f"not an AdmissionReview: {type(wrong).__name__}: {wrong}") from wrong
    response = _placed(request, options) if is_new_pod else {"allowed": True}
    return orjson.dumps({**own, "response": {"uid": uid} | response})


_NEW_POD = ("CREATE", "Pod", "")


def _placed(request: Json, options: Options) -> Json:
    try:
        obj = request["object"]
        obj["metadata"].setdefault("namespace", request["namespace"])
        operations = patch_of(Pod.read(obj, options.serve), options)
    except _UNREADABLE as error:
        why = f"Where this pod may run cannot be told, as it cannot be read: {type(error).__name__}: {error}"
        return {"allowed": False, "status": {"code": _BAD_REQUEST, "reason": "BadRequest", "message": why}}
    if not operations:
        return {"allowed": True}
    patch = base64.b64encode(orjson.dumps(operations)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}
