"""Field ownership: metadata.managedFields after an update and after a server-side apply (pure).

Facts: k8s.io/apimachinery/pkg/util/managedfields and structured-merge-diff's merge.Updater.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import orjson

from infra.local.cluster.errors import ApiError
from infra.local.cluster.field_merge import merged, without
from infra.local.cluster.field_rules import Rule, struct
from infra.local.cluster.field_sets import (
    FieldSet,
    Path,
    compare,
    fields,
    from_fields_v1,
    shown,
    to_fields_v1,
    with_parents,
)
from infra.local.cluster.resources import Resource
from infra.local.cluster.shapes import root

Object = dict[str, Any]

_MOST_UPDATERS = 10  # managedfields.DefaultMaxUpdateManagers
_ANCIENT = "ancient-changes"
_BEFORE = "before-first-apply"
KUBECTL = "kubectl"
CONTROLLERS = "local-controllers"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_NOBODYS = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    }
)
"""Fields that are never owned (stripmeta.go)."""


class Manager(NamedTuple):
    """A field manager; `operation` is Apply or Update."""

    operation: str
    name: str
    api_version: str
    subresource: str


@dataclass(frozen=True, slots=True)
class Owned:
    """The fields that a manager owns, and since when (metav1.Time)."""

    fields: FieldSet
    time: str


Managed = Mapping[Manager, Owned]

Owners = Callable[[Object, Object], list[Object]]
"""Returns metadata.managedFields after a change, from the object before and after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write: the object's rule, the manager, the time. `status`: whether the kind has a status subresource."""

    rule: Rule
    manager: Manager
    now: str
    status: bool

    @classmethod
    def of(cls, resource: Resource, manager: Manager, now: str) -> Self:
        return cls(rule=struct(root(resource)), manager=manager, now=now, status=resource.has_status)


def read(entries: Any) -> Managed | None:
    """Parse metadata.managedFields; return None if it is empty or cannot be parsed."""
    try:
        found = {
            Manager(
                one["operation"], one.get("manager", ""), one.get("apiVersion", ""), one.get("subresource", "")
            ): Owned(from_fields_v1(one.get("fieldsV1", {})), one.get("time", ""))
            for one in entries or ()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return found or None


def decode(said: Any, live: Any) -> Managed:
    """Return the request's managedFields if they can be parsed, else the live ones; `[{}]` resets them."""
    return {} if said == [{}] else read(said) or read(live) or {}


def written(managed: Managed) -> list[dict[str, Any]]:
    """Return metadata.managedFields: managers that apply come first, then in order of time."""
    order = sorted(managed.items(), key=lambda each: (each[0].operation, each[1].time, each[0][1:]))
    return [_entry(manager, owned) for manager, owned in order]


def _entry(manager: Manager, owned: Owned) -> dict[str, Any]:
    entry = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_fields_v1(owned.fields),
    }
    return entry | ({"subresource": manager.subresource} if manager.subresource else {})


def bookkeeping(write: Write, said: Any = None) -> Owners:
    """Return the function that computes managedFields after an update; `said` are the managedFields in the request."""

    def owners(old: Object, new: Object) -> list[Object]:
        managed = decode(said, old["metadata"].get("managedFields"))
        # An object that was created without managedFields gets none until the first apply (skipnonapplied.go).
        if not managed and "uid" in old["metadata"]:
            return []
        return written(updated(managed, old, new, write))

    return owners


def updated(managed: Managed, old: Object, new: Object, write: Write) -> Managed:
    """Return the owners after an update: the writer owns the fields that it changed, nobody those it removed."""
    change = compare(write.rule, old, new)
    left = _taken_away(managed, change.taken | change.removed)
    taken = frozenset(path for path in change.taken - _NOBODYS if _is_written(path, write))
    if taken:
        mine = left[write.manager].fields if write.manager in left else frozenset()
        left |= {write.manager: Owned(mine | taken, write.now)}
    return _capped(left)


def _taken_away(managed: Managed, lost: FieldSet | set[Path]) -> dict[Manager, Owned]:
    left = {manager: replace(owned, fields=owned.fields - lost) for manager, owned in managed.items()}
    return {manager: owned for manager, owned in left.items() if owned.fields}


def _is_written(path: Path, write: Write) -> bool:
    """Return whether the endpoint writes the field (the strategies' GetResetFields)."""
    of_status = path[0] == "f:status"
    return of_status if write.manager.subresource == "status" else not (of_status and write.status)


def _capped(managed: Managed) -> Managed:
    """Keep at most ten updating managers, by merging the oldest into one (capmanagers.go)."""
    updaters = sorted((m for m in managed if m.operation == "Update"), key=lambda m: (managed[m].time, m))
    old = updaters[: max(0, len(updaters) - _MOST_UPDATERS)]
    if not old:
        return managed
    chosen = updaters[: len(old) + 1]
    bucket = Manager("Update", _ANCIENT, chosen[-1].api_version, "")
    merged_fields = frozenset[Path]().union(*(managed[m].fields for m in chosen))
    left = {manager: owned for manager, owned in managed.items() if manager not in chosen}
    return left | {bucket: Owned(merged_fields, max(managed[m].time for m in chosen))}


def applied(live: Object, config: Object, write: Write, *, force: bool) -> tuple[Object, Managed]:
    """Apply a configuration to the live object; return the new object and its owners.

    Raise ApiError 409 if other managers own fields with other values, unless forced. Fields that this manager
    applied before but no longer applies are removed if nobody else owns them.
    """
    managed = read(live["metadata"].get("managedFields")) or {}
    bare = {**live, "metadata": {k: v for k, v in live["metadata"].items() if k != "managedFields"}}
    if not managed and "uid" in live["metadata"]:
        before = Manager("Update", _BEFORE, write.manager.api_version, "")
        first = replace(write, manager=before, status=False)
        managed = updated({}, {"metadata": {}}, bare, first)
    config = _settable(config, write)
    owned_before = managed[write.manager].fields if write.manager in managed else frozenset()
    wanted = fields(write.rule, config)
    claims = {**managed, write.manager: Owned(wanted, write.now)}
    new = _pruned(write.rule, merged(write.rule, bare, config), claims, owned_before)
    change = compare(write.rule, bare, new)
    others = {manager: owned for manager, owned in managed.items() if manager != write.manager}
    conflicts = {manager: owned.fields & change.taken for manager, owned in others.items()}
    _refuse(_serious(conflicts, bare, write), force=force)
    left = _taken_away(others, change.taken | change.removed)
    mine = frozenset(path for path in wanted - _NOBODYS if _is_written(path, write))
    same = new == bare and mine == owned_before
    time = managed[write.manager].time if same and write.manager in managed else write.now
    return new, left | {write.manager: Owned(mine, time)} if mine else left


def _settable(config: Object, write: Write) -> Object:
    """Return the configuration without the fields that the endpoint does not write."""
    if write.manager.subresource == "status":
        metadata = {key: config["metadata"][key] for key in ("name", "namespace") if key in config["metadata"]}
        return {key: value for key, value in config.items() if key != "spec"} | {"metadata": metadata}
    return {key: value for key, value in config.items() if not (key == "status" and write.status)}


def _pruned(rule: Rule, new: Object, claims: Managed, before: FieldSet) -> Object:
    """Remove fields that were applied before and that nobody owns any more (merge.Updater: prune)."""
    if not before:
        return new
    ensured = with_parents(before)
    everything = with_parents(fields(rule, new))
    claimed = with_parents(path for owned in claims.values() for path in owned.fields)
    left = with_parents(fields(rule, without(rule, new, ensured) or {}))
    left = with_parents(fields(rule, without(rule, new, everything - left - claimed) or {}))
    pruned: Object = without(rule, new, (everything - left) & ensured) or {}
    return pruned


def _serious(conflicts: Mapping[Manager, FieldSet], live: Object, write: Write) -> list[tuple[Manager, Path]]:
    """Return the conflicts; for kubectl, without the fields of its client-side apply (lastappliedmanager.go)."""
    allowed: FieldSet = frozenset()
    if write.manager.name == KUBECTL and (last := last_applied(live)):
        theirs = fields(write.rule, last)
        change = compare(write.rule, last, live)
        allowed = theirs - change.modified - change.removed
    return [(manager, path) for manager, lost in conflicts.items() for path in sorted(lost - allowed)]


def last_applied(live: Object) -> Object | None:
    """Return the configuration that kubectl's client-side apply recorded, if any."""
    text = live["metadata"].get("annotations", {}).get(LAST_APPLIED)
    try:
        found = orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _refuse(conflicts: Sequence[tuple[Manager, Path]], *, force: bool) -> None:
    """Raise ApiError 409 if there are conflicts, unless forced (managedfields/internal/conflict.go)."""
    if force or not conflicts:
        return
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_named(manager)}", "field": shown(path)}
        for manager, path in conflicts
    ]
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        message = f"Apply failed with 1 conflict: conflict with {_named(manager)}: {shown(path)}"
    else:
        lines = []
        for manager in sorted({manager for manager, _ in conflicts}, key=lambda each: each.name):
            lines.append(f"conflicts with {_named(manager)}:")
            lines += [f"- {shown(path)}" for other, path in conflicts if other == manager]
        message = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    raise ApiError(409, "Conflict", message, {"causes": causes})


def _named(manager: Manager) -> str:
    text = f'"{manager.name}"'
    if manager.subresource:
        text += f' with subresource "{manager.subresource}"'
    return f"{text} using {manager.api_version}" if manager.operation == "Update" else text
