"""The admission webhook as a program of the local stack, for an API server without MutatingAdmissionPolicy.

It has the permissions of its own roles, makes its certificates as in a cluster, and is called on loopback.
"""

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache

import yaml

from infra.kubernetes.overlay import WEBHOOK
from infra.local.addresses import Addresses
from infra.local.plan import REPOSITORY, Plan
from infra.local.relay_account import APPLIED, MANAGER, renewed, token_of
from tpu_standins.clients.api import Api
from tpu_standins.clients.labels import marked
from tpu_standins.clients.objects import Object
from tpu_standins.kubeconfig import for_token_file, write_private
from tpu_standins.ports import free_ports
from tpu_standins.processes import Processes, Program

HOST = "127.0.0.1"
ACCOUNT = "webhook"
POLICIES = "mutatingadmissionpolicies"
CONFIGURATION = WEBHOOK.parent / "webhook-configuration.yaml"
_LEFT_OUT = ("Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service")


@contextmanager
def webhook(plan: Plan, addresses: Addresses, processes: Processes) -> Iterator[None]:
    """Have the API server call the webhook until the block is left, unless it has MutatingAdmissionPolicy.

    The relay's manifests are applied before. Raises ApiError, ProgramFailed.
    """
    with closing(Api.of(addresses.kubeconfig)) as api:
        if api.serves(POLICIES):
            yield
            return
        for manifest in manifests():
            api.apply(APPLIED[manifest["kind"]], manifest, manager=MANAGER)
        write_private(addresses.webhook_token, token_of(api, ACCOUNT))
        way = addresses.kubeconfig.read_text(encoding="utf-8")
        write_private(addresses.webhook_kubeconfig, for_token_file(way, addresses.webhook_token))
        (port,) = free_ports(1)
        processes.wait_until_ready(*processes.start(program(plan, addresses, port)))
        called = configuration(f"https://{HOST}:{port}", conditions=False)
        api.apply(APPLIED[called["kind"]], called, manager=MANAGER)
    with renewed(addresses, ACCOUNT, addresses.webhook_token):
        yield


def program(plan: Plan, addresses: Addresses, port: int) -> Program:
    """Return the webhook, of this repository, whichever functions and relay the stack has."""
    own = {
        "KUBECONFIG": str(addresses.webhook_kubeconfig),
        "HOST": HOST,
        "PORT": str(port),
        "NAMES": HOST,
        "DRAIN_SECONDS": "0",
        **addresses.served,
        "GANGS": addresses.gangs,
    }
    return replace(plan, root=REPOSITORY).module(
        "webhook", ("relay.webhook",), f"listening on https://{HOST}:{port}", addresses, own
    )


@cache
def manifests() -> tuple[Object, ...]:
    """Return what the webhook has in a cluster, but for what runs it there."""
    built = subprocess.run(["kubectl", "kustomize", str(WEBHOOK)], capture_output=True, text=True, check=True)
    return tuple(marked(each) for each in yaml.safe_load_all(built.stdout) if each["kind"] not in _LEFT_OUT)


def configuration(address: str, *, conditions: bool) -> Object:
    """Return how the API server calls it at an address; without conditions about all: it judges them itself.

    The embedded API server evaluates no conditions.
    """
    found = yaml.safe_load(CONFIGURATION.read_text(encoding="utf-8"))
    left_out = frozenset[str]() if conditions else {"matchConditions"}
    called = [
        {
            **{key: value for key, value in each.items() if key not in left_out},
            "clientConfig": {"url": f"{address}{each['clientConfig']['service']['path']}"},
        }
        for each in found["webhooks"]
    ]
    return marked({**found, "webhooks": called})
