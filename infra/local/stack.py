"""The whole provisioner on one machine: emulators, local cluster and GKE, functions, relay and schedules."""

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from infra.local import emulators, messaging, prerequisites
from infra.local.addresses import Addresses, port_of
from infra.local.functions import function
from infra.local.interrupts import orderly_end
from infra.local.ports import free_ports
from infra.local.processes import Processes, Program, Says
from infra.local.relay_account import relay_account
from infra.local.scheduler import scheduled

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run: `root` contains functions/, relay/ and infra/; logs and the kubeconfig are written below `state`.

    `gke_arguments` are additional arguments of `python -m infra.local.gke`, its pace for example.
    """

    root: Path = REPOSITORY
    state: Path = REPOSITORY / ".local"
    project: str = "demo-project"
    location: str = "us-central2"
    cluster_id: str = "demo"
    sweep_seconds: float = 5
    gke_arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack."""

    addresses: Addresses
    processes: Processes


@contextmanager
def running(plan: Plan, seed: Callable[[Addresses], None]) -> Iterator[Stack]:
    """Start everything; stop everything when the block is left, also by Ctrl-C or SIGTERM at any moment.

    `seed` writes what must exist before the relay publishes its first message: the cluster's settings.
    Raises PrerequisitesMissing or ProgramFailed, both with a message for people.
    """
    tools = prerequisites.require(prerequisites.find(os.environ))
    plan.state.mkdir(parents=True, exist_ok=True)
    table = messaging.read().of_cluster(plan.cluster_id)
    with (
        orderly_end(),
        tempfile.TemporaryDirectory(prefix="tpu-slices-") as scratch,
        Processes(setpriv=tools.setpriv, logs=plan.state / "logs", environment=os.environ) as processes,
        ExitStack() as schedules,
    ):
        addresses = allotted(plan, table.functions)
        pubsub, firestore = processes.start(
            emulators.pubsub(tools, port_of(addresses.pubsub), Path(scratch)),
            emulators.firestore(tools, port_of(addresses.firestore), Path(scratch)),
        )
        (cluster,) = processes.start(local_cluster(plan, addresses))
        functions = processes.start(*(function(each, plan.root, addresses) for each in table.functions))
        processes.wait_until_ready(cluster)
        (gke,) = processes.start(local_gke(plan, addresses))
        processes.wait_until_ready(pubsub)
        messaging.create(table, addresses)
        processes.wait_until_ready(firestore)
        seed(addresses)
        schedules.enter_context(relay_account(addresses))
        (relay,) = processes.start(local_relay(plan, addresses))
        processes.wait_until_ready(gke, relay, *functions)
        for each in table.schedules:
            schedules.enter_context(scheduled(each, addresses, plan.sweep_seconds))
        yield Stack(addresses, processes)


def allotted(plan: Plan, functions: tuple[str, ...]) -> Addresses:
    """Return an address for each part, all free now, so that no part has to wait to learn where the others are."""
    pubsub, firestore, gke, kubernetes, buttons, *rest = free_ports(5 + len(functions))
    return Addresses(
        project=plan.project,
        location=plan.location,
        cluster_id=plan.cluster_id,
        pubsub=f"127.0.0.1:{pubsub}",
        firestore=f"127.0.0.1:{firestore}",
        gke=f"127.0.0.1:{gke}",
        kubernetes=f"http://127.0.0.1:{kubernetes}",
        buttons=f"http://127.0.0.1:{buttons}",
        functions={name: f"http://127.0.0.1:{port}" for name, port in zip(functions, rest, strict=True)},
        kubeconfig=plan.state / "kubeconfig",
    )


def local_cluster(plan: Plan, addresses: Addresses) -> Program:
    """Return the Kubernetes API server of the local cluster, which also writes the kubeconfig."""
    arguments = (
        "infra.local.cluster",
        *("--port", str(port_of(addresses.kubernetes))),
        *("--secure-port", str(*free_ports(1))),  # the same after a restart
        *("--kubeconfig", str(addresses.kubeconfig)),
    )
    return _module("cluster", arguments, f"listening on {addresses.kubernetes}", plan, addresses)


def local_gke(plan: Plan, addresses: Addresses) -> Program:
    """Return the local GKE: the node pool API, whose pools become nodes of the local cluster."""
    arguments = (
        "infra.local.gke",
        *("--port", str(port_of(addresses.gke))),
        *("--buttons-port", str(port_of(addresses.buttons))),
        *("--cluster", addresses.cluster_path),
        *("--kubernetes", addresses.kubernetes),
        *("--operations-topic", addresses.topic_path("cloud-operations")),
        *plan.gke_arguments,
    )
    said = f"listening on {addresses.gke} buttons {addresses.buttons}"
    return _module("gke", arguments, said, plan, addresses)


def local_relay(plan: Plan, addresses: Addresses) -> Program:
    """Return the relay, ready once its watches are established; it has the permissions of its own role."""
    program = _module("relay", ("relay",), "ready", plan, addresses)
    own = {"KUBECONFIG": str(addresses.relay_kubeconfig), "PROBE_PORT": "0"}
    return replace(program, environment={**program.environment, **own})


def _module(name: str, arguments: tuple[str, ...], said: str, plan: Plan, addresses: Addresses) -> Program:
    return Program(
        name=name,
        command=(sys.executable, "-m", *arguments),
        ready=Says(re.escape(said)),
        folder=plan.root,
        environment=addresses.environment() | {"PYTHONPATH": str(plan.root), "PYTHONUNBUFFERED": "1"},
    )
