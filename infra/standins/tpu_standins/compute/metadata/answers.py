"""A VM's metadata server: what it answers. Pure.

Paths, headers and the formats of values: [doc:metadata/querying-metadata, metadata/predefined-metadata-keys]. A request
needs `Metadata-Flavor: Google`, and must not have come through a proxy: both are 403. Directories end in a slash and
list their entries; without it they redirect. What a VM can ask beyond that, as access tokens, is not implemented.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tpu_standins.cloud.loopback import Answered, Asked
from tpu_standins.compute.guests import enabled
from tpu_standins.compute.messages import address, identifier
from tpu_standins.compute.paths import Resource, number
from tpu_standins.compute.state import Instance, State, Vm

Tree = Mapping[str, Any]
"""A directory: entries are texts, or directories."""

ROOT = "/computeMetadata/v1/"
_TEXT = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM", "Content-Type": "application/text"}
_LONGEST = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A GET: a path below ROOT, and whether it waits for a change of what has the ETag `since`."""

    path: str
    recursive: bool = False
    as_text: bool = False
    waits: bool = False
    since: str = ""
    seconds: float = _LONGEST
    rest: Mapping[str, str] = field(default_factory=dict)


def refused(asked: Asked) -> Answered | None:
    """Return the refusal of a request that is not one of a program on the VM."""
    if "x-forwarded-for" in asked.headers or asked.headers.get("metadata-flavor", "").lower() != "google":
        return page(403, "Your client does not have permission to get this URL from this server.")
    return None


def question(target: str) -> Question | None:
    """Parse a GET's target; None: it is not below ROOT."""
    parts = urlsplit(target)
    if not parts.path.startswith(ROOT):
        return None
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    seconds = query.pop("timeout_sec", "")
    return Question(
        path=unquote(parts.path.removeprefix(ROOT)),
        recursive=query.pop("recursive", "false").lower() == "true",
        as_text=query.pop("alt", "") == "text",
        waits=query.pop("wait_for_change", "false").lower() == "true",
        since=query.pop("last_etag", ""),
        seconds=float(seconds) if seconds.isdigit() else _LONGEST,
        rest=query,
    )


def answer(state: State, path: Resource, asked: Question, now: float) -> Answered:
    """Return what a VM is told now."""
    instance = state.instances.get(path)
    if instance is None or instance.vm is None:
        return page(404, "There is no such VM.")
    if asked.rest or asked.as_text:
        return page(501, f"Not implemented by the local metadata server: {sorted(asked.rest) or 'alt=text'}.")
    if asked.path.startswith("instance/guest-attributes") and not enabled(instance.vm):
        return page(403, "Guest attributes endpoint access is disabled.")
    found: Any = _tree(state, instance, instance.vm, now)
    names = asked.path.split("/")
    for name in [name for name in names if name]:
        if name == "service-accounts":
            return page(501, "Service accounts are not implemented by the local metadata server.")
        found = found.get(name) if isinstance(found, Mapping) else None
        if found is None:
            return page(404, "The requested URL was not found on this server.")
    return _told(found, asked)


def etag(told: Answered) -> str:
    return told.headers.get("ETag", "")


def _told(found: Any, asked: Question) -> Answered:
    if isinstance(found, Mapping) and asked.recursive:
        data = json.dumps(_camel(found)).encode()
        return _found(data, {"Content-Type": "application/json"})
    if not isinstance(found, Mapping):
        return _found(str(found).encode())
    if asked.path and not asked.path.endswith("/"):
        return Answered(301, b"", {**_TEXT, "Location": f"{ROOT}{asked.path}/"})
    names = sorted(f"{name}/" if isinstance(value, Mapping) else name for name, value in found.items())
    return _found("".join(f"{name}\n" for name in names).encode())


def _found(data: bytes, headers: Mapping[str, str] | None = None) -> Answered:
    tag = hashlib.sha256(data).hexdigest()[:16]
    return Answered(200, data, {**_TEXT, **(headers or {}), "ETag": tag})


def _camel(tree: Any) -> Any:
    """Return a directory as JSON: its own names in camelCase, those of attributes as they are."""
    if not isinstance(tree, Mapping):
        return tree
    free = ("attributes", "guestAttributes")
    named = {_camel_name(name): value for name, value in tree.items()}
    return {name: value if name in free else _camel(value) for name, value in named.items()}


def _camel_name(name: str) -> str:
    first, *rest = name.split("-")
    return first + "".join(word.title() for word in rest)


def _tree(state: State, instance: Instance, vm: Vm, now: float) -> Tree:
    path = instance.path
    template = state.templates[state.groups[instance.group].template]
    numbered = f"projects/{number(path.project)}"
    guests: dict[str, dict[str, str]] = {}
    for (space, key), value in vm.attributes.items():
        guests.setdefault(space, {})[key] = value
    spot = template.provisioning == "SPOT"
    return {
        "instance": {
            "attributes": dict(vm.metadata),
            "guest-attributes": guests,
            "hostname": f"{path.name}.{path.location}.c.{path.project}.internal",
            "id": str(identifier(path, vm.born)),
            "machine-type": f"{numbered}/machineTypes/{template.machine_type}",
            "maintenance-event": "NONE",
            "name": path.name,
            "network-interfaces": {"0": {"ip": address(path)}},
            "preempted": "TRUE" if vm.preempted and vm.noticed is not None and now >= vm.noticed else "FALSE",
            "scheduling": {
                "automatic-restart": "FALSE" if spot else "TRUE",
                "on-host-maintenance": "TERMINATE",
                "preemptible": "TRUE" if spot else "FALSE",
            },
            "zone": f"{numbered}/zones/{path.location}",
        },
        "project": {"numeric-project-id": str(number(path.project)), "project-id": path.project},
    }


def written(asked: Asked) -> tuple[str, str | None] | None:
    """Return which guest attribute a request writes, as namespace/key, and its value, None to delete it."""
    path = urlsplit(asked.target).path
    beginning = f"{ROOT}instance/guest-attributes/"
    if asked.method not in ("PUT", "DELETE") or not path.startswith(beginning):
        return None
    value = asked.body.decode("utf-8", "replace") if asked.method == "PUT" else None
    return unquote(path.removeprefix(beginning)), value


def done() -> Answered:
    return Answered(200, b"", _TEXT)


def page(status: int, why: str) -> Answered:
    return Answered(status, f"{why}\n".encode(), {**_TEXT, "Content-Type": "text/html; charset=UTF-8"})
