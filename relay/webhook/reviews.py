"""AdmissionReviews: what the API server asks, and what it is answered (admission.k8s.io/v1). Pure.

| what it asks                       | what it is answered                                                          |
|------------------------------------|------------------------------------------------------------------------------|
| the creation of a pod              | it is allowed, with the patch that places it                                 |
| - one that cannot be read          | it is refused: it could take hosts that are meant for others                 |
| the creation or a change of a      | it is allowed, with the patch that labels its pod templates if it is a gang  |
| JobSet, Job or LeaderWorkerSet     |                                                                              |
| - one that cannot be read          | it is refused: half a gang could run                                         |
| any other                          | it is allowed                                                                |
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from relay.webhook import gangs, placing
from relay.webhook.placing import Options
from relay.webhook.pods import Json, Pod

_BAD_REQUEST = 400
_UNREADABLE = (TypeError, KeyError, ValueError, AttributeError)


def answer(body: bytes, options: Options) -> bytes:
    """Return the AdmissionReview that answers another, both in JSON. Raise ValueError if it is none."""
    review: Any = orjson.loads(body)
    try:
        request: Json = review["request"]
        uid, own = request["uid"], {each: review[each] for each in ("apiVersion", "kind")}
        what = (request["kind"]["kind"], request["operation"])
        judge = None if request.get("subResource") else _JUDGES.get(what)
    except (KeyError, TypeError) as wrong:
        raise ValueError(f"not an AdmissionReview: {type(wrong).__name__}: {wrong}") from wrong
    response = _judged(request, options, judge) if judge else {"allowed": True}
    return orjson.dumps({**own, "response": {"uid": uid} | response})


def _placed(request: Json, options: Options) -> list[Json]:
    obj = request["object"]
    obj["metadata"].setdefault("namespace", request["namespace"])
    return placing.patch_of(Pod.read(obj, options.serve), options)


def _labelled(request: Json, options: Options) -> list[Json]:
    return gangs.patch_of(request["object"], request.get("oldObject"), options.gangs)


@dataclass(frozen=True, slots=True)
class _Judge:
    """What is to be told of an object, and the operations that it leads to."""

    question: str
    operations: Callable[[Json, Options], list[Json]]


_POD = _Judge("Where this pod may run", _placed)
_WORKLOAD = _Judge("Whether this is a gang", _labelled)
_JUDGES: Mapping[tuple[str, str], _Judge] = {
    ("Pod", "CREATE"): _POD,
    **dict.fromkeys(itertools.product(("JobSet", "Job", "LeaderWorkerSet"), ("CREATE", "UPDATE")), _WORKLOAD),
}


def _judged(request: Json, options: Options, judge: _Judge) -> Json:
    try:
        operations = judge.operations(request, options)
    except _UNREADABLE as error:
        why = f"{judge.question} cannot be told, as it cannot be read: {type(error).__name__}: {error}"
        return {"allowed": False, "status": {"code": _BAD_REQUEST, "reason": "BadRequest", "message": why}}
    if not operations:
        return {"allowed": True}
    encoded = base64.b64encode(orjson.dumps(operations)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}
