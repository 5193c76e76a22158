"""`python -m infra.local up`: the whole stack, running until Ctrl-C."""

import itertools
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from infra.local import borrowed, live_stack
from infra.local.addresses import Addresses
from infra.local.borrowed import NotBorrowed
from infra.local.cluster_choice import Asked, Borrowed
from infra.local.clusters import create_all
from infra.local.live_target import Live
from infra.local.plan import Plan, planned
from infra.local.relay_account import open_account
from infra.local.settings import seed
from infra.local.stack import Stack, running
from infra.local.up import note
from infra.local.up.control import listening
from infra.local.up.keeper import Keeper, NotYet
from infra.local.up.log_lines import Logs
from infra.local.up.trouble import Press
from infra.local.up.verbs import Refused, pressed
from tpu_standins.clients.errors import ApiError
from tpu_standins.prerequisites import PrerequisitesMissing, find, require
from tpu_standins.processes import ProgramFailed

NOT_STARTED, FAILED, INTERRUPTED = 2, 1, 130
LIVE_SWEEP_SECONDS = 30.0
"""Twice as often as deployed: no log sink tells of operations that ended."""

WELCOME = """\
Everything is running. {vendor}, its hosts and their kubelets are simulated: what takes minutes takes seconds here.

In another terminal:
{exports}

{first}
  kubectl get jobsets,pods,nodes                      see its pods and nodes
  kubectl describe jobset NAME                        see why it waits
  .venv/bin/slices list --watch                       watch the slices; more: .venv/bin/slices --help

Inject faults:
  {local} stockout --zone us-central2-b [--capacity spot] [--hosts 16] --for 5m
  {local} quota|slow|api-errors 10%                    see the --help of each
  {local} break-host|heal|preempt|maintain|repair|upgrade [POOL]
  {local} relay stop|start
  {local} kill receive|reconcile|sweep|relay|...
  {local} clear                                        end all injected faults
Inspect:
  {local} status
  {local} logs [-f] [PART ...]                         logs of all parts, merged; files in {logs}

Press Ctrl-C to stop the stack. Logs:
"""


FIRST = "  kubectl apply -f examples/v5e.yaml                  create a JobSet"
FIRST_ON_COMPUTE = """\
  kubectl apply -f examples/demo/compute/a-two-groups.yaml  create a JobSet
  kubectl apply -f examples/demo/compute/c-declared.yaml    create a TPUNodeGroup
  kubectl get tng                                     see how far it is"""
LIVE_WELCOME = """\
Everything is running. GKE is not simulated: node pools of up to {chips} chips at a time are created in
{path} as {account}, and cost money until they are deleted.

In another terminal:
{exports}

  kubectl apply -f FILE                               create a JobSet; `slices plan -f FILE` says before what it gets
  .venv/bin/slices list --watch                       watch the slices; more: .venv/bin/slices --help
  {local} relay stop|start
  {local} kill receive|reconcile|sweep|relay|...
  {local} status
  {local} logs [-f] [PART ...]                         logs of all parts, merged; files in {logs}

Press Ctrl-C to release all slices and stop the stack. Logs:
"""


def up(state: Path, asked: Asked) -> int:
    """Run the stack until Ctrl-C and return the exit code; logs, kubeconfig and the note are written below `state`."""
    if is_up(state):
        print(f"A stack is already running in {state}: `python -m infra.local status` shows it.", file=sys.stderr)
        return FAILED
    try:
        tools = require(find(os.environ))
        cluster = borrowed.settled(asked, tools.kubectl, state)
        live = isinstance(cluster, Borrowed) and cluster.live is not None
        if live and (elsewhere := os.environ.get("GKE_EMULATOR_HOST")):
            say(f"GKE is asked at {elsewhere}, as GKE_EMULATOR_HOST says.")
        sweep_seconds = LIVE_SWEEP_SECONDS if live else 5.0
        plan = planned(state, cluster, compute=asked.compute, queues=True, sweep_seconds=sweep_seconds)
        vendor = "Compute Engine" if plan.compute else "GKE"
        say(f"{plan.told}\nStarting the emulators, the cluster, {vendor}, the functions and the relay ...")
        with running(plan, seeding(plan)) as stack:
            _keep(stack, state, plan)
    except (PrerequisitesMissing, NotBorrowed) as problem:
        print(problem, file=sys.stderr)
        return NOT_STARTED
    except ProgramFailed as problem:
        print(problem, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("All processes were stopped.", file=sys.stderr)
        return INTERRUPTED
    finally:
        note.forget(state)
        (state / "credentials.json").unlink(missing_ok=True)
    return FAILED


def seeding(plan: Plan) -> Callable[[Addresses], None]:
    """Return what writes the settings of the plan's cluster."""
    return partial(live_stack.seed, plan.live) if plan.live else seed


def _keep(stack: Stack, state: Path, plan: Plan) -> None:
    keeper = Keeper(processes=stack.processes, afterwards=afterwards(stack, seeding(plan)), say=say)
    keeper.take_over()
    with listening(keeper) as control:
        where = noted(stack.addresses, control, state)
        where.write(state)
        say(welcome(where, plan.live))
        logs = Logs(state / "logs")
        threading.Thread(target=logs.follow, args=(say,), name="logs", daemon=True).start()
        try:
            keeper.keep(itertools.count())
        except KeyboardInterrupt:
            print("\nStopping all processes ...", file=sys.stderr, flush=True)
            raise


def is_up(state: Path) -> bool:
    """Return whether a stack that uses this folder responds."""
    try:
        pressed(Press(f"{note.Note.read(state).control}/"))
    except (note.NothingUp, Refused):
        return False
    return True


def afterwards(stack: Stack, seeded: Callable[[Addresses], None]) -> dict[str, Callable[[], None]]:
    """Return, by part, what restores the state of a part that keeps it in memory only, after a restart.

    The embedded API server has lost its objects, and has other certificates: its clients that keep nothing begin anew.
    """
    addresses = stack.addresses

    def restart_clients() -> None:
        for child in stack.processes.children():
            if child.program.name in {"proxy", "jobset", "kubelet"}:
                child.process.kill()

    return {
        "pubsub": lambda: create_all(addresses),
        "firestore": lambda: seeded(addresses),
        "cluster": restart_clients,
        **dict.fromkeys(("etcd", "kube-apiserver", "proxy"), lambda: reopen_account(addresses)),
    }


def reopen_account(addresses: Addresses) -> None:
    """Open the relay's account. Raises NotYet as long as the API server does not let it."""
    try:
        open_account(addresses, within=0)
    except (ApiError, ProgramFailed) as problem:
        raise NotYet(f"the relay's account cannot be opened: {problem}") from problem


def noted(addresses: Addresses, control: str, state: Path) -> note.Note:
    return note.Note(
        control=control,
        gke=None if addresses.live_path else addresses.buttons,
        compute=bool(addresses.compute),
        faults=addresses.proxy_buttons,
        cluster=addresses.cluster_path,
        environment=addresses.environment(),
        logs=str(state / "logs"),
    )


def welcome(where: note.Note, live: Live | None) -> str:
    exports = "\n".join(f"  export {name}={value}" for name, value in where.environment.items())
    told = {"exports": exports, "local": ".venv/bin/python -m infra.local", "logs": where.logs}
    if live is None:
        vendor, first = ("Compute Engine", FIRST_ON_COMPUTE) if where.compute else ("GKE", FIRST)
        return WELCOME.format(**told, vendor=vendor, first=first)
    return LIVE_WELCOME.format(**told, path=live.path, account=live.account, chips=live.chips)


def say(line: str) -> None:
    print(line, flush=True)
