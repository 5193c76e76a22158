"""The verbs that write an object: create, update, patch and server-side apply."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import orjson

from infra.local.cluster import bodies, errors, managed_fields, patches, targets
from infra.local.cluster.applying import configuration, refuse_options
from infra.local.cluster.binding import refuse_rebinding
from infra.local.cluster.calls import Answer, Call
from infra.local.cluster.managed_fields import LAST_APPLIED, Manager, Owners, Write
from infra.local.cluster.objects import Object, Objects, timestamp
from infra.local.cluster.targets import Target


class Writes:
    def __init__(self, objects: Objects, clock: Callable[[], datetime]) -> None:
        self._objects = objects
        self._clock = clock

    def create(self, target: Target, call: Call) -> Answer:
        body = self._read(target, call)
        metadata = body.object.setdefault("metadata", {})
        if target.resource.namespaced:
            agree(metadata, "namespace", target.namespace)
        owners = self._owners(target, call, metadata.get("managedFields"))
        created = self._objects.create(target.resource.plural, body.object, dry_run=call.is_dry(), owners=owners)
        return Answer(code=201, body=created, warnings=body.warnings)

    def update(self, target: Target, call: Call) -> Answer:
        body = self._read(target, call)
        version = body.object.get("metadata", {}).get("resourceVersion")
        if target.resource.custom and not version:
            cause = errors.FieldError(
                "metadata.resourceVersion",
                "FieldValueInvalid",
                "Invalid value: 0x0: must be specified for an update",
            )
            raise errors.invalid(target.resource.kind, target.resource.group, target.name, [cause])
        return self._store(target, call, body)

    def patch(self, target: Target, call: Call) -> Answer:
        refuse_options(call)
        if call.content_type == targets.APPLY_PATCH:
            return self._apply(target, call)
        current = self._current(target)
        patch = bodies.parse(call.body, call.content_type)
        match call.content_type:
            case targets.JSON_PATCH:
                patched = patches.json_patch(current, patch)
            case targets.STRATEGIC_MERGE_PATCH if isinstance(patch, dict):
                patched = patches.strategic_merge(current, patch)
            case targets.MERGE_PATCH if isinstance(patch, dict):
                patched = patches.merge(current, patch)
            case _:
                raise errors.bad_request("the patch is not a JSON object")
        validation = call.params.get("fieldValidation", "")
        return self._store(target, call, bodies.read_patched(target.resource, patched, validation))

    def _apply(self, target: Target, call: Call) -> Answer:
        """Apply a configuration; create the object if it does not exist."""
        resource = target.resource
        config = configuration(resource, call.body)
        agree(config.setdefault("metadata", {}), "name", target.name)
        if resource.namespaced:
            agree(config["metadata"], "namespace", target.namespace)
        live = self._live(target)
        bare = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}}
        write = self._write(target, call, "Apply")
        new, managed = managed_fields.applied(live or bare, config, write, force=call.says("force"))
        if write.manager.name == managed_fields.KUBECTL and LAST_APPLIED in new["metadata"].get("annotations", {}):
            new["metadata"]["annotations"] |= {LAST_APPLIED: orjson.dumps(config).decode() + "\n"}
        body = bodies.read_patched(resource, new, call.params.get("fieldValidation", ""))
        entries = managed_fields.written(managed)
        if live is not None:
            return self._store(target, call, body, lambda *_: entries)
        created = self._objects.create(resource.plural, body.object, dry_run=call.is_dry(), owners=lambda *_: entries)
        return Answer(code=201, body=created, warnings=body.warnings)

    def _store(self, target: Target, call: Call, body: bodies.Body, owners: Owners | None = None) -> Answer:
        metadata = body.object.setdefault("metadata", {})
        agree(metadata, "name", target.name)
        if target.resource.namespaced:
            agree(metadata, "namespace", target.namespace)
        if target.resource.plural == "pods" and not target.subresource:
            refuse_rebinding(self._current(target), body.object)
        status = target.subresource == "status"
        said = None if status else metadata.get("managedFields")
        stored = self._objects.update(
            target.resource.plural,
            body.object,
            status=status,
            dry_run=call.is_dry(),
            owners=owners or self._owners(target, call, said),
        )
        return Answer(body=stored, warnings=body.warnings)

    def _owners(self, target: Target, call: Call, said: Any) -> Owners:
        return managed_fields.bookkeeping(self._write(target, call, "Update"), said)

    def _write(self, target: Target, call: Call, operation: str) -> Write:
        manager = Manager(operation, call.manager(), target.resource.api_version, target.subresource)
        return Write.of(target.resource, manager, timestamp(self._clock()))

    def _read(self, target: Target, call: Call) -> bodies.Body:
        parsed = bodies.parse(call.body, call.content_type)
        return bodies.read(target.resource, parsed, call.params.get("fieldValidation", ""))

    def _current(self, target: Target) -> Object:
        return self._objects.get(target.resource.plural, target.namespace or None, target.name)

    def _live(self, target: Target) -> Object | None:
        """Return the live object, or None if it does not exist. Raise if the target is a subresource."""
        try:
            return self._current(target)
        except errors.ApiError:
            if target.subresource:
                raise
            return None


def agree(metadata: dict[str, Any], key: str, expected: str) -> None:
    """Set a name or namespace from the path. Raise ApiError 400 if the body has another one."""
    if metadata.setdefault(key, expected) == expected:
        return
    if key == "namespace":
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    raise errors.bad_request(
        f"the name of the object ({metadata[key]}) does not match the name on the URL ({expected})"
    )
