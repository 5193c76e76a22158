"""The verbs that remove objects: delete, deletecollection, and the eviction of a pod."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from infra.local.embedded.http.requests import Answer, Request
from infra.local.embedded.http.selection import selection
from infra.local.embedded.store import errors
from infra.local.embedded.store.deletion import PROPAGATIONS, Deletion, timestamp
from infra.local.embedded.store.kinds import Kind, Object
from infra.local.embedded.store.objects import Objects
from infra.local.embedded.store.table import BUILT_IN

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
_ORPHANED_PODS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """metav1.DeleteOptions."""

    how: Deletion
    preconditions: Mapping[str, str]


def delete(objects: Objects, kind: Kind, request: Request) -> Answer:
    options = _options(request, _asked(request))
    current = objects.get(kind, request.namespace, request.name)
    _check(kind, current, options.preconditions)
    deleted, gone = objects.delete(kind, request.namespace, request.name, options.how)
    warnings = [_ORPHANED_PODS] if kind.id == "jobs" and not options.how.propagation else []
    if kind.answers_deleted or not gone:
        return Answer(body=deleted, warnings=warnings)
    named = {"name": request.name, "group": kind.group, "kind": kind.plural, "uid": deleted["metadata"]["uid"]}
    details = {key: value for key, value in named.items() if value}
    return Answer(body=SUCCESS | {"details": details}, warnings=warnings)


def delete_collection(objects: Objects, kind: Kind, request: Request) -> Answer:
    options = _options(request, _asked(request))
    if kind.id == "namespaces":
        raise errors.ApiError(
            405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
        )
    matches = selection(kind, request)
    found = [obj for obj in objects.stored(kind, request.namespace) if matches(obj)]
    metadata = {"resourceVersion": str(objects.version)}
    for obj in found:
        objects.delete(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"], options.how)
    return Answer(
        body={"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": found}
    )


def evict(objects: Objects, request: Request, now: datetime) -> Answer:
    """Evict a pod, as kubectl drain asks. There are no PodDisruptionBudgets that could prevent it."""
    pods, eviction = BUILT_IN["pods"], request.object()
    if eviction.get("metadata", {}).get("name", request.name) != request.name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    options = _options(request, eviction.get("deleteOptions") or {})
    pod = objects.get(pods, request.namespace, request.name)
    _check(pods, pod, options.preconditions)
    if not options.how.dry_run and "deletionTimestamp" not in pod["metadata"]:
        target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        target |= {"message": "Eviction API: evicting", "lastTransitionTime": timestamp(now)}
        kept = [each for each in pod["status"].get("conditions", []) if each["type"] != target["type"]]
        objects.put(pods, pod | {"status": pod["status"] | {"conditions": [*kept, target]}})
    objects.delete(pods, request.namespace, request.name, options.how)
    return Answer(code=201, body=SUCCESS | {"code": 201})


def _asked(request: Request) -> Object:
    """Return the DeleteOptions of the body, which outweighs the query, else those of the query."""
    if request.body:
        return request.object()
    asked: Object = {key: request.params[key] for key in ("propagationPolicy",) if request.params.get(key)}
    asked |= {"gracePeriodSeconds": request.number("gracePeriodSeconds")}
    asked |= {"orphanDependents": request.says("orphanDependents")} if "orphanDependents" in request.params else {}
    return asked | ({"dryRun": ["All"]} if request.is_dry() else {})


def _options(request: Request, asked: Mapping[str, Any]) -> _Options:
    """Validate DeleteOptions. Raise ApiError 400 for wrong types, 422 for contradictory or unsupported values."""
    grace, orphan, dry = (asked.get(key) for key in ("gracePeriodSeconds", "orphanDependents", "dryRun"))
    propagation, preconditions = asked.get("propagationPolicy") or "", asked.get("preconditions") or {}
    numeric = grace is None or type(grace) is int
    if not (
        numeric and isinstance(propagation, str) and isinstance(preconditions, dict) and isinstance(dry or [], list)
    ):
        raise errors.bad_request('DeleteOptions in version "v1" cannot be handled as a DeleteOptions')
    found = list(errors.choice("propagationPolicy", propagation or "Background", PROPAGATIONS))
    found += [] if not dry or dry == ["All"] else errors.choice("dryRun", dry[0], ("All",))
    if orphan is not None and propagation:
        why = "orphanDependents and deletionPropagation cannot be both set"
        found.append(errors.wrong("propagationPolicy", propagation, why))
    if found:
        raise errors.invalid("DeleteOptions", "meta.k8s.io", "", found)
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    dry_run = bool(dry) or (request.subresource == "eviction" and request.is_dry())
    how = Deletion(propagation=propagation, grace_seconds=grace, dry_run=dry_run)
    return _Options(how=how, preconditions=preconditions)


def _check(kind: Kind, current: Object, wanted: Mapping[str, str]) -> None:
    for key, shown in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        asked, known = wanted.get(key), current["metadata"][key]
        if asked and asked != known:
            why = f"the {shown} in the precondition ({asked}) does not match the {shown} in record ({known})"
            raise errors.conflict(kind.plural, kind.group, current["metadata"]["name"], why)
