"""The whole provisioner on one machine: emulators, a cluster, the local GKE, functions, relay and schedules."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra.local import messaging, target
from infra.local.addresses import Addresses, port_of
from infra.local.cluster_parts import cluster
from infra.local.clusters import further
from infra.local.functions import function
from infra.local.live_stack import released
from infra.local.plan import STARTUP_SCRIPT, Plan
from infra.local.relay_account import relay_account
from infra.local.scheduler import scheduled
from infra.local.webhook import webhook
from tpu_standins import emulators, prerequisites
from tpu_standins.interrupts import orderly_end
from tpu_standins.ports import free_ports
from tpu_standins.processes import Processes, Program


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
        ExitStack() as held,
    ):
        addresses = allotted(plan, table.functions)
        pubsub, firestore = processes.start(
            emulators.pubsub(tools, port_of(addresses.pubsub), Path(scratch)),
            emulators.firestore(tools, port_of(addresses.firestore), Path(scratch)),
        )
        functions = processes.start(*(function(each, plan.root, addresses) for each in table.functions))
        held.enter_context(cluster(plan, addresses, processes, Path(scratch)))
        (proxy,) = processes.start(faults(plan, addresses))
        vendor = local_compute if plan.compute else local_gke
        hosts = () if plan.live else processes.start(vendor(plan, addresses))
        processes.wait_until_ready(pubsub)
        messaging.create(table, addresses)
        processes.wait_until_ready(firestore, proxy)
        seed(addresses)
        held.enter_context(relay_account(addresses))
        held.enter_context(webhook(plan, addresses, processes))
        (relay,) = processes.start(local_relay(plan, addresses))
        processes.wait_until_ready(*hosts, relay, *functions, target.started(plan, addresses, processes))
        for each in table.schedules:
            held.enter_context(scheduled(each, addresses, plan.sweep_seconds * each.minutes))
        held.enter_context(further(addresses, plan.sweep_seconds))
        if plan.live:
            held.enter_context(released(plan.live, addresses))
        yield Stack(addresses, processes)


def allotted(plan: Plan, functions: tuple[str, ...]) -> Addresses:
    """Return an address for each part, all free now, so that no part has to wait to learn where the others are."""
    pubsub, firestore, vendor, buttons, proxy, proxy_buttons, *rest = free_ports(6 + len(functions))
    return Addresses(
        project=plan.project,
        location=plan.location,
        cluster_id=plan.cluster_id,
        pubsub=f"127.0.0.1:{pubsub}",
        firestore=f"127.0.0.1:{firestore}",
        gke=os.environ.get("GKE_EMULATOR_HOST", "") if plan.live else "" if plan.compute else f"127.0.0.1:{vendor}",
        compute=f"127.0.0.1:{vendor}" if plan.compute else "",
        buttons=f"http://127.0.0.1:{buttons}",
        proxy_port=proxy,
        proxy_buttons=f"http://127.0.0.1:{proxy_buttons}",
        functions={name: f"http://127.0.0.1:{port}" for name, port in zip(functions, rest, strict=True)},
        folder=plan.state,
        serve=plan.serve,
        gangs=plan.gangs,
        live_path=plan.live.path if plan.live else None,
    )


def local_gke(plan: Plan, addresses: Addresses) -> Program:
    """Return the local GKE: the node pool API, whose pools become nodes of the cluster."""
    arguments = (
        "tpu_standins.gke",
        *("--port", str(port_of(addresses.gke))),
        *("--buttons-port", str(port_of(addresses.buttons))),
        *("--cluster", addresses.cluster_path),
        *("--kubeconfig", str(addresses.kubeconfig)),
        *("--operations-topic", addresses.topic_path("cloud-operations")),
        *plan.gke_arguments,
    )
    said = f"listening on {addresses.gke} buttons {addresses.buttons}"
    return plan.module("gke", arguments, said, addresses)


def local_compute(plan: Plan, addresses: Addresses) -> Program:
    """Return the local Compute Engine, whose instances become nodes of the cluster."""
    (metadata,) = free_ports(1)
    arguments = (
        "tpu_standins.compute",
        *("--port", str(port_of(addresses.compute))),
        *("--buttons-port", str(port_of(addresses.buttons))),
        *("--metadata-port", str(metadata)),
        *("--project", addresses.project),
        *("--zones", f"{addresses.location}-b"),
        *("--kubeconfig", str(addresses.kubeconfig)),
        *("--operations-topic", addresses.topic_path("cloud-operations")),
        *(() if plan.unbooted else ("--startup-script", str(STARTUP_SCRIPT))),
        *plan.compute_arguments,
    )
    said = f"listening on {addresses.compute} buttons {addresses.buttons} metadata http://127.0.0.1:{metadata}"
    return plan.module("compute", arguments, said, addresses)


def faults(plan: Plan, addresses: Addresses) -> Program:
    """Return the proxy between the relay and the API server."""
    arguments = (
        "tpu_standins.proxy",
        *("--kubeconfig", str(addresses.kubeconfig)),
        *("--write", str(addresses.proxy_kubeconfig)),
        *("--port", str(addresses.proxy_port)),
        *("--buttons-port", str(port_of(addresses.proxy_buttons))),
    )
    said = f"listening on https://127.0.0.1:{addresses.proxy_port} buttons {addresses.proxy_buttons}"
    return plan.module("proxy", arguments, said, addresses)


def local_relay(plan: Plan, addresses: Addresses) -> Program:
    """Return the relay, ready once its watches are established; it has the permissions of its own role."""
    own = {"KUBECONFIG": str(addresses.relay_kubeconfig), "HOSTS_IN": addresses.hosts_in, **addresses.served}
    return plan.module("relay", ("relay",), "ready", addresses, own)
