"""The verbs that remove objects: delete, deletecollection, and the eviction of a pod."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from infra.local.cluster import bodies, deletion, errors, targets
from infra.local.cluster.calls import Answer, Call
from infra.local.cluster.listing import Lists, whole_number
from infra.local.cluster.names import invalid_value
from infra.local.cluster.objects import Object, Objects, timestamp
from infra.local.cluster.resources import Resource
from infra.local.cluster.selectors import Predicate
from infra.local.cluster.targets import Target

_EVICTION = Resource(
    group="policy", version="v1", plural="evictions", kind="Eviction", namespaced=True, has_status=False
)
_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
_ORPHANED_PODS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """metav1.DeleteOptions. `propagation` is empty if it is not specified."""

    propagation: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False
    preconditions: Mapping[str, str]


class Removals:
    def __init__(self, objects: Objects, lists: Lists, clock: Callable[[], datetime]) -> None:
        self._objects = objects
        self._lists = lists
        self._clock = clock

    def delete(self, target: Target, call: Call) -> Answer:
        options = _read(call)
        current = self._current(target)
        _check_preconditions(target, current, options.preconditions)
        deleted = self._remove(target, current, options)
        warnings = [_ORPHANED_PODS] if target.resource.plural == "jobs" and not options.propagation else []
        if target.resource.returns_deleted or self._still_there(target, deleted, options):
            return Answer(body=deleted, warnings=warnings)
        details = {
            "name": target.name,
            "group": target.resource.group,
            "kind": target.resource.plural,
            "uid": deleted["metadata"]["uid"],
        }
        return Answer(body=_SUCCESS | {"details": details}, warnings=warnings)

    def delete_collection(self, target: Target, call: Call, matches: Predicate) -> Answer:
        options = _read(call)
        listed = self._lists.page(target, matches, {})
        for item in listed["items"]:
            self._remove(target, item, options)
        return Answer(body=listed)

    def evict(self, target: Target, call: Call) -> Answer:
        """Evict a pod, as kubectl drain requests. There are no PodDisruptionBudgets that could prevent it."""
        eviction = bodies.read(_EVICTION, bodies.parse(call.body, call.content_type), "").object
        if eviction.get("metadata", {}).get("name", target.name) != target.name:
            raise errors.bad_request("name in URL does not match name in Eviction object")
        options = _options(eviction.get("deleteOptions", {}), rehearsed=call.is_dry())
        pod = self._current(target)
        _check_preconditions(target, pod, options.preconditions)
        if not options.dry_run:
            pod["status"]["conditions"] = [
                *(c for c in pod["status"].get("conditions", []) if c["type"] != "DisruptionTarget"),
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting",
                    "lastTransitionTime": timestamp(self._clock()),
                },
            ]
            self._objects.update("pods", pod, status=True)
        self._remove(target, pod, options)
        return Answer(code=201, body=_SUCCESS | {"code": 201})

    def _remove(self, target: Target, item: Object, options: Options) -> Object:
        # Jobs orphan their pods by default (pkg/registry/batch/job: DefaultGarbageCollectionPolicy).
        usual = "Orphan" if target.resource.plural == "jobs" else "Background"
        delete = self._objects.rehearse_delete if options.dry_run else self._objects.delete
        return delete(
            target.resource.plural,
            item["metadata"].get("namespace"),
            item["metadata"]["name"],
            grace_seconds=options.grace_seconds,
            propagation=options.propagation or usual,
        )

    def _current(self, target: Target) -> Object:
        return self._objects.get(target.resource.plural, target.namespace or None, target.name)

    def _still_there(self, target: Target, deleted: Object, options: Options) -> bool:
        """Return whether the object still exists, waiting for its deletion to finish, or would in case of a dry run."""
        if options.dry_run:
            return not deletion.is_over(target.resource.plural, deleted)
        try:
            return bool(self._current(target)["metadata"]["uid"] == deleted["metadata"]["uid"])
        except errors.ApiError:
            return False


def _read(call: Call) -> Options:
    """Parse DeleteOptions from the body, else from the query."""
    if call.body:
        if call.content_type not in ("", targets.JSON):
            raise errors.not_implemented(f'"{call.content_type}" in the verb "delete"')
        return _options(bodies.parse_object(call.body, targets.JSON), rehearsed=call.is_dry())
    said: dict[str, Any] = {"propagationPolicy": call.params.get("propagationPolicy")}
    if "gracePeriodSeconds" in call.params:
        said["gracePeriodSeconds"] = whole_number(call.params, "gracePeriodSeconds")
    if "orphanDependents" in call.params:
        said["orphanDependents"] = call.says("orphanDependents")
    return _options(said, rehearsed=call.is_dry())


def _options(said: Mapping[str, Any], *, rehearsed: bool) -> Options:
    """Validate DeleteOptions. Raise ApiError 400 for wrong types, 422 for contradictory or unsupported values."""
    grace, orphan, dry = (said.get(key) for key in ("gracePeriodSeconds", "orphanDependents", "dryRun"))
    propagation, preconditions = said.get("propagationPolicy") or "", said.get("preconditions") or {}
    fits = (
        isinstance(propagation, str)
        and isinstance(preconditions, dict)
        and isinstance(dry or [], list)
        and (grace is None or type(grace) is int)
        and (orphan is None or isinstance(orphan, bool))
    )
    if not fits:
        raise errors.bad_request('DeleteOptions in version "v1" cannot be handled as a DeleteOptions')
    wrong = []
    if orphan is not None and propagation:
        why = "orphanDependents and deletionPropagation cannot be both set"
        wrong.append(invalid_value("propagationPolicy", propagation, why))
    if dry and dry != ["All"]:
        message = f'Unsupported value: "{dry[0]}": supported values: "All"'
        wrong.append(errors.FieldError("dryRun", "FieldValueNotSupported", message))
    if wrong:
        raise errors.invalid("DeleteOptions", "meta.k8s.io", "", wrong)
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    return Options(
        propagation=propagation,
        grace_seconds=1 if grace is not None and grace < 0 else grace,  # as rest.BeforeDelete does
        dry_run=rehearsed or bool(dry),
        preconditions=preconditions,
    )


def _check_preconditions(target: Target, current: Object, wanted: Mapping[str, str]) -> None:
    metadata, resource = current["metadata"], target.resource
    for key, shown in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        asked = wanted.get(key)
        if asked and asked != metadata[key]:
            why = f"Precondition failed: {shown} in precondition: {asked}, {shown} in object meta: {metadata[key]}"
            raise errors.conflict(resource.plural, resource.group, target.name, why)
