"""Guest attributes: what a VM tells of itself, by namespace and key [doc:metadata/manage-guest-attributes]. Pure."""

import re
from dataclasses import replace

from tpu_standins.compute.paths import Resource
from tpu_standins.compute.state import State, Vm

_PATH = re.compile(r"(?P<namespace>[^/]+)/(?P<key>[^/]+)")


def enabled(vm: Vm) -> bool:
    """Return whether the VM's metadata lets it write them; nothing may be written or read otherwise."""
    return vm.metadata.get("enable-guest-attributes", "").upper() == "TRUE"


def entries(vm: Vm, path: str) -> list[tuple[str, str, str]]:
    """Return (namespace, key, value) of all, of a `namespace/`, or of one `namespace/key`."""
    namespace, _, key = path.partition("/")
    return [
        (space, name, value)
        for (space, name), value in sorted(vm.attributes.items())
        if namespace in ("", space) and key in ("", name)
    ]


def parse(path: str) -> tuple[str, str] | None:
    """Parse `namespace/key`; None: it is no such path."""
    found = _PATH.fullmatch(path)
    return (found["namespace"], found["key"]) if found else None


def written(state: State, path: Resource, where: tuple[str, str], value: str | None) -> State:
    """Return the state in which a VM wrote a value, or deleted it: None."""
    instance = state.instances.get(path)
    if instance is None or instance.vm is None:
        return state
    rest = {key: each for key, each in instance.vm.attributes.items() if key != where}
    attributes = rest if value is None else {**rest, where: value}
    return state.with_instances([replace(instance, vm=replace(instance.vm, attributes=attributes))])
