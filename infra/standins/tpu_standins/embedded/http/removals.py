"""The verbs that remove objects: delete, deletecollection, and the eviction of a pod."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tpu_standins.clients.conditions import Condition, of, with_condition
from tpu_standins.embedded.http.lists import page
from tpu_standins.embedded.http.requests import Answer, Request
from tpu_standins.embedded.store import errors
from tpu_standins.embedded.store.kinds import Kind, Object
from tpu_standins.embedded.store.objects import PROPAGATIONS, Deletion, Objects

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
_ORPHANED = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them"
_EVICTED = Condition(type="DisruptionTarget", reason="EvictionByEvictionAPI", message="Eviction API: evicting")


def delete(objects: Objects, kind: Kind, request: Request) -> Answer:
    asked = _asked(request)
    how = _deletion(asked)
    _check(kind, objects.get(kind, request.namespace, request.name), asked)
    deleted, gone = objects.delete(kind, request.namespace, request.name, how)
    if kind.answers_deleted or not gone:
        return Answer(body=deleted, warning=_ORPHANED if kind.id == "jobs" and not how.propagation else "")
    details = {"name": request.name, "group": kind.group, "kind": kind.plural, "uid": deleted["metadata"]["uid"]}
    return Answer(body=SUCCESS | {"details": {key: value for key, value in details.items() if value}})


def delete_collection(objects: Objects, kind: Kind, request: Request) -> Answer:
    how, found = _deletion(_asked(request)), page(objects, kind, request)
    for obj in found["items"]:
        objects.delete(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"], how)
    return Answer(body=found)


def evict(objects: Objects, kind: Kind, request: Request, now: datetime) -> Answer:
    """Evict a pod, as kubectl drain asks. There are no PodDisruptionBudgets that could prevent it."""
    eviction = request.object()
    if (eviction.get("metadata") or {}).get("name", request.name) != request.name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    asked = (eviction.get("deleteOptions") or {}) | ({"dryRun": ["All"]} if request.is_dry else {})
    how, pod = _deletion(asked), objects.get(kind, request.namespace, request.name)
    _check(kind, pod, asked)
    if not how.dry_run and "deletionTimestamp" not in pod["metadata"]:
        objects.put(kind, pod | {"status": pod["status"] | {"conditions": with_condition(of(pod), _EVICTED, now)}})
    objects.delete(kind, request.namespace, request.name, how)
    return Answer(code=201, body=SUCCESS | {"code": 201})


def _asked(request: Request) -> Object:
    """Return the DeleteOptions of the body, which outweighs the query, else those of the query."""
    if request.body:
        return request.object()
    asked: Object = {key: request.params[key] for key in ("propagationPolicy",) if request.params.get(key)}
    asked |= {"gracePeriodSeconds": request.number("gracePeriodSeconds")}
    return asked | ({"dryRun": ["All"]} if request.is_dry else {})


def _deletion(asked: Mapping[str, Any]) -> Deletion:
    grace, dry, propagation = asked.get("gracePeriodSeconds"), asked.get("dryRun"), asked.get("propagationPolicy") or ""
    if not isinstance(grace, int | None) or not isinstance(propagation, str) or not isinstance(dry or [], list):
        raise errors.bad_request('DeleteOptions in version "v1" cannot be handled as a DeleteOptions')
    found = list(errors.choice("propagationPolicy", propagation or "Background", PROPAGATIONS))
    found += errors.choice("dryRun", dry[0], ("All",)) if dry else []
    found += [errors.prohibited("orphanDependents", "say propagationPolicy")] if "orphanDependents" in asked else []
    if found:
        raise errors.invalid("DeleteOptions", "meta.k8s.io", "", found)
    return Deletion(propagation=propagation, grace_seconds=grace, dry_run=bool(dry))


def _check(kind: Kind, current: Object, asked: Mapping[str, Any]) -> None:
    for key, value in (asked.get("preconditions") or {}).items():
        known = current["metadata"].get(key)
        if value and value != known:
            why = f"the {key} in the precondition ({value}) does not match that in record ({known})"
            raise errors.conflict(kind.plural, kind.group, current["metadata"]["name"], why)
