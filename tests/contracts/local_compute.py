"""The adapter under contract, on the local Compute Engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from google.api_core.exceptions import BadRequest
from google.cloud.compute_v1 import InstanceGroupManager, InstancesClient

from tests.adapters.compute_stories import COMPUTE, PATH, ZONE
from tests.builders import NOW, self_managed
from tpu_slices.adapters.compute.api import clients_by
from tpu_slices.adapters.compute.backend import ComputeBackend
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.slices import Owner, PoolName
from tpu_slices.domain.planning.tpu_operator import PartNames, operator_names
from tpu_slices_simulator.fakes.clock import FakeClock
from tpu_slices_simulator.fakes.troubles import Trouble, Verb
from tpu_standins.compute.paths import Resource
from tpu_standins.compute.state import Fault, Kind, State
from tpu_standins.compute.vms import RunningVm, running
from tpu_standins.testing.compute import World as Compute
from tpu_standins.testing.compute import a_group, a_policy, a_state, a_template, alone

_KINDS = {
    Trouble.FORBIDDEN: Kind.PERMISSION,
    Trouble.UNAVAILABLE: Kind.UNAVAILABLE,
    Trouble.ANSWER_LOST: Kind.LOST_ANSWER,
}
_VERBS = {Verb.CREATE: "insert", Verb.DELETE: "delete", Verb.RELABEL: "patch"}
_OPERATORS = [
    {"key": "startup-script", "value": "#!/bin/bash"},
    {
        "key": "kube-labels",
        "value": "cloud.google.com/gke-tpu-accelerator=tpu7x,cloud.google.com/gke-tpu-topology=2x2x2",
    },
]
"""Metadata of TPU operator's; `kube-labels`, which it writes to each instance, are in the template here."""
_COLLECTIONS = ("resourcePolicies", "instanceTemplates", "instanceGroupManagers")


class LocalCompute:
    """The adapter, over Google's clients, against the local Compute Engine."""

    def __init__(self) -> None:
        self._compute = Compute(a_state(zones=frozenset({ZONE, "us-central1-a"})))
        self._clock = FakeClock(NOW)
        self._clients = clients_by(self._compute.client)
        self.backend = ComputeBackend(self._clients, self._clock)
        pools = PoolSettings(compute=COMPUTE)
        self.cluster = self_managed(path=PATH, zone=ZONE, pools=pools)

    def finish(self, *names: str) -> None:
        """Let the operation that runs on one of these end, and no more."""
        assert self._running(names), f"no operation runs on {names}"
        while self._running(names):
            self.wait(timedelta(seconds=1))

    def wait(self, time: timedelta) -> None:
        self._compute.after(time.total_seconds())
        self._clock.advance(time)

    def run_out(self, pool: PoolName) -> None:
        self._order(Fault(kind=Kind.STOCKOUT, names=pool, times=None))

    def exhaust_quota(self, pool: PoolName) -> None:
        """Let the project's quota be too small for a pool."""
        self._order(Fault(kind=Kind.QUOTA, names=pool, times=None))

    def let_creation_fail(self, pool: PoolName, part: str) -> None:
        """Let the operation that is to create a part of a pool fail."""
        self._order(Fault(kind=Kind.FAILS, method=f"{part}.insert", names=pool, code="QUOTA_EXCEEDED", message="None."))

    def slow_down(self, pool: PoolName) -> None:
        """Let the next operation on a pool take long."""
        self._order(Fault(kind=Kind.SLOW, names=pool, seconds=600))

    def refuse(self, kind: Kind, part: str) -> None:
        """Let the next request for a part be refused."""
        self._order(Fault(kind=kind, method=f"{part}.insert"))

    def lose_next_answer(self) -> None:
        self.trouble(Trouble.ANSWER_LOST, *_VERBS, calls=1)

    def now(self) -> datetime:
        """Return the time at which what is known of a pool is from now on."""
        return datetime.fromtimestamp(self._compute.clock.now, UTC)

    def describe(self, pool: PoolName, description: str) -> None:
        """Let somebody replace the description of a group."""
        group = {"instance_group_manager": pool, "project": "demo-project", "zone": ZONE}
        self._compute.groups.patch_unary(instance_group_manager_resource={"description": description}, **group)
        self.wait(timedelta(seconds=5))

    def group(self, pool: PoolName) -> InstanceGroupManager:
        """Return a group as Compute Engine shows it."""
        found: InstanceGroupManager = self._compute.groups.get(
            instance_group_manager=pool, project="demo-project", zone=ZONE
        )
        return found

    def trouble(self, trouble: Trouble, *verbs: Verb, calls: int | None = None) -> None:
        methods = [f"{each}.{_VERBS[verb]}" for verb in verbs for each in _COLLECTIONS] or ["*"]
        for method in methods:
            self._order(Fault(kind=_KINDS[trouble], method=method, times=calls))

    def break_down(self, kind: Kind) -> None:
        """Let every further call fail."""
        self._order(Fault(kind=kind, times=None))

    def calm_down(self) -> None:
        self._change(lambda state: replace(state, faults=()))

    def squat(self, pool: PoolName, part: str) -> None:
        """Let somebody else have made a part of that name."""
        match part:
            case "resourcePolicies":
                self._compute.make_policy(a_policy(pool))
            case "instanceTemplates":
                self._compute.make_template(a_template(pool))
            case _:
                self._compute.make_template(a_template("theirs"))
                self.make_others_group(pool, "theirs")
        self.wait(timedelta(minutes=1))

    def make_others_group(self, name: str, template: str) -> None:
        """Let somebody else have made a group of a template."""
        self.wait(timedelta(seconds=2))
        self._compute.make_group(alone(name, instance_template=f"global/instanceTemplates/{template}"))
        self.wait(timedelta(seconds=2))

    def reserve(self, name: str, machine_type: str, count: int) -> None:
        """Let the project have a reservation."""
        where = {"project": "demo-project", "zone": ZONE, "name": name}
        self._compute.press("POST", "/reservations", **where, machine_type=machine_type, count=count)

    def running(self) -> Mapping[Resource, RunningVm]:
        """Return the VMs whose machines run now."""
        return running(*self._compute.plane.look())

    def press(self, button: str, **body: Any) -> None:
        """Let something happen to VMs."""
        self._compute.press("POST", f"/instances/{button}", **body)

    def hold_operators_slice(self, owner: Owner, template: str | None = None, description: str = "") -> PartNames:
        """Let TPU operator have made a slice of two hosts; return its names. `template`: its user's, None: its own."""
        names = operator_names(owner)
        policy = f"regions/us-central1/resourcePolicies/{names.policy}"
        self._compute.make_policy(a_policy(names.policy))
        if template is None:
            self._compute.make_template(a_template(names.template, metadata={"items": _OPERATORS}))
        self.wait(timedelta(seconds=2))
        self._compute.make_group(
            a_group(
                names.group,
                instance_template=f"global/instanceTemplates/{names.template}" if template is None else template,
                resource_policies={"workload_policy": policy},
                description=description,
            )
        )
        self.wait(timedelta(minutes=5))
        return names

    def bring_template(self, name: str, **properties: object) -> str:
        """Let a tenant have made an instance template; return its path."""
        self._compute.make_template(a_template(name, **properties))
        self.wait(timedelta(seconds=2))
        return f"projects/demo-project/global/instanceTemplates/{name}"

    def vanish(self, pool: PoolName) -> None:
        """Remove a group without an operation."""
        path = Resource("demo-project", f"zones/{ZONE}", "instanceGroupManagers", pool)
        self._change(lambda state: state.without(path))

    def stands(self, pool: PoolName) -> set[str]:
        """Return the collections that have something of that name."""
        state, _ = self._compute.plane.look()
        return {
            path.collection
            for each in (state.policies, state.templates, state.groups)
            for path in each
            if path.name == pool
        }

    def described(self) -> list[tuple[str, str]]:
        """Return name and description of all policies, templates and groups."""
        state, _ = self._compute.plane.look()
        policies = [(path.name, each.message.description) for path, each in state.policies.items()]
        templates = [(path.name, each.message.description) for path, each in state.templates.items()]
        return policies + templates + [(path.name, each.message.description) for path, each in state.groups.items()]

    def metadata(self, pool: PoolName) -> list[dict[str, str]]:
        """Return the metadata of each VM of a pool's group."""
        state, _ = self._compute.plane.look()
        return [
            dict(each.vm.metadata) for path, each in state.instances.items() if path.name.startswith(pool) and each.vm
        ]

    def change_vm(self, pool: PoolName, **metadata: str) -> None:
        """Let somebody else add metadata to the first VM of a pool's group."""
        (first, *_) = self._compute.members(pool)
        found = self._compute.instance(first.name)
        items = [*found.metadata.items, *({"key": key, "value": value} for key, value in metadata.items())]
        self._compute.instances.set_metadata_unary(
            instance=first.name,
            metadata_resource={"fingerprint": found.metadata.fingerprint, "items": items},
            project="demo-project",
            zone=ZONE,
        )
        self.wait(timedelta(seconds=5))

    def calls(self, method: str) -> int:
        """Return how often a method was called."""
        return sum(each.method == method for each in self._compute.plane.calls())

    def reading_late(self) -> ComputeBackend:
        """Return a backend that sees VMs as they are now, whatever becomes of them."""
        listed = list(self._compute.client(InstancesClient).list(project="demo-project", zone=ZONE))
        return self._with_instances(list=lambda **_: listed)

    def echoing(self) -> ComputeBackend:
        """Return a backend whose changes of metadata are refused with what is in them."""

        def set_metadata(*, request: Mapping[str, Any], **_: Any) -> None:
            items = {each.key: each.value for each in request["metadata_resource"].items}
            raise BadRequest(f"Invalid value: {items}")  # type: ignore[no-untyped-call]

        return self._with_instances(set_metadata_unary=set_metadata)

    def _with_instances(self, **methods: Callable[..., Any]) -> ComputeBackend:
        ours = self._clients.instances
        known = {"list": ours.list, "set_metadata_unary": ours.set_metadata_unary, **methods}
        instances = cast("InstancesClient", SimpleNamespace(**known))
        return ComputeBackend(replace(self._clients, instances=instances), self._clock)

    def told(self) -> list[bytes]:
        """Return the entries that the log sink has published since the last call."""
        published, self._compute.published[:] = list(self._compute.published), []
        return [json.dumps(entry).encode() for entry in published]

    def requests(self) -> list[str]:
        """Return the methods that were called and change something, in their order."""
        return [each.method for each in self._compute.plane.calls() if each.method.partition(".")[2] in _VERBS.values()]

    def forget_ended_operations(self) -> None:
        self._change(lambda state: replace(state, operations={}))

    def _running(self, names: Collection[str]) -> bool:
        state, _ = self._compute.plane.look()
        return any(each.target.name in names and each.ended is None for each in state.operations.values())

    def _order(self, fault: Fault) -> None:
        self._change(lambda state: replace(state, faults=(*state.faults, fault)))

    def _change(self, change: Callable[[State], State]) -> None:
        self._compute.plane.change(lambda state, _: change(state))
