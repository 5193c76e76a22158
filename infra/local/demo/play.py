"""The whole demo: starts the stack, runs the steps, reports the outcome."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from rich.console import Console

from infra.local import borrowed
from infra.local.borrowed import DEMO_NAMESPACE, NotBorrowed
from infra.local.cluster_choice import Asked
from infra.local.demo import report, screen, watch
from infra.local.demo.hands import Hands
from infra.local.demo.report import Leftovers
from infra.local.demo.stage import Stage, utc_now
from infra.local.demo.steps import Progress
from infra.local.demo.story import story, story_on_compute
from infra.local.demo.view import View
from infra.local.demo.watch import Witness
from infra.local.plan import planned
from infra.local.relay_account import MANAGER
from infra.local.settings import seed
from infra.local.stack import Stack, running
from tpu_standins.clients.api import Api
from tpu_standins.clients.labels import marked
from tpu_standins.prerequisites import PrerequisitesMissing, find, require
from tpu_standins.processes import ProgramFailed

NOT_STARTED, INTERRUPTED = 2, 130
"""Exit codes, in addition to those of `report`."""

SWEEP_SECONDS = 2.0
LOG_LINES = 12

INTRODUCTION = f"""\
This runs the provisioner's own functions and relay on Google's emulators of Pub/Sub and Firestore. GKE, its hosts and
their kubelets are simulated: what takes minutes there takes seconds here. The sweep runs every {SWEEP_SECONDS:.0f} s
instead of every minute, and infra/clusters/demo-project/demo.yaml sets short retry delays.
"""


ON_COMPUTE = f"""\
This runs the provisioner's own functions and relay on Google's emulators of Pub/Sub and Firestore, in a self-managed
cluster. Compute Engine, its instances and their kubelets are simulated: what takes minutes there takes seconds here.
The sweep runs every {SWEEP_SECONDS:.0f} s instead of every minute, and infra/clusters/demo-project/self-managed.yaml
sets short retry delays.
"""


def demo(state: Path, asked: Asked) -> int:
    """Run the demo and return the exit code; logs and the kubeconfig are written below `state`."""
    try:
        tools = require(find(os.environ))
        cluster = borrowed.settled(asked, tools.kubectl, state)
        plan = planned(state, cluster, compute=asked.compute, sweep_seconds=SWEEP_SECONDS)
        say(f"{ON_COMPUTE if asked.compute else INTRODUCTION}{plan.told}\n")
        started = time.monotonic()
        with running(plan, seed) as stack:
            say(f"{time.monotonic() - started:5.1f} s  everything is running; the logs are in {state / 'logs'}")
            return _play(stack, started)
    except (PrerequisitesMissing, NotBorrowed) as problem:
        print(problem, file=sys.stderr)
        return NOT_STARTED
    except ProgramFailed as problem:
        print(problem, file=sys.stderr)
        return report.FAILED
    except KeyboardInterrupt:
        print("\nInterrupted: all processes were stopped.", file=sys.stderr)
        return INTERRUPTED


def _play(stack: Stack, started: float) -> int:
    _make_namespace(stack)
    with watch.opened(stack.addresses, utc_now) as eyes:
        with screen.opened(Console()) as shown:
            stage = Stage(stack=stack, eyes=eyes, hands=Hands(stack.addresses), screen=shown, started=started)
            steps = stage.play(story_on_compute() if stack.addresses.compute else story())
            left = stage.clean(steps)
        measured = () if stack.addresses.compute else _measured(stage.view, eyes.witness)
        tell(_ending(stage.view, measured, left))
        tell(_explanation(steps, stage.view, stack))
    code, message = report.outcome(steps, left)
    say(f"\n{message} It took {time.monotonic() - started:.0f} s.")
    return code


def _make_namespace(stack: Stack) -> None:
    namespace = marked({"metadata": {"name": DEMO_NAMESPACE}})
    with closing(Api.of(stack.addresses.kubeconfig)) as api:
        api.apply("namespaces", namespace, manager=MANAGER)


def _measured(view: View, witness: Witness) -> Iterator[str]:
    yield "\nLatency from the unschedulable pod to CreateNodePool"
    yield from report.latency_lines(report.latencies(view, witness.noticed))


def _ending(view: View, measured: Iterable[str], left: Leftovers) -> Iterator[str]:
    yield "\nTimeline of each slice"
    yield from report.timelines(view)
    yield from measured
    yield "\nResources left"
    yield from report.leftover_lines(left)


def _explanation(steps: Iterable[Progress], view: View, stack: Stack) -> Iterator[str]:
    """Yield what was observed of the steps that did not complete, and the last log lines of each part."""
    missing = [each for each in steps if not each.happened]
    for each in missing:
        yield "\nNot completed"
        yield from report.seen_of(each, view)
    if missing:
        for child in stack.processes.children():
            yield f"\nLast lines of {child.log}"
            yield from child.output().splitlines()[-LOG_LINES:]


def tell(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


def say(line: str) -> None:
    print(line, flush=True)
