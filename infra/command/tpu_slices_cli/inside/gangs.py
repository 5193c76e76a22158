"""`slices gangs open`: let pods go that the gate of gangs holds, without the relay."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import click

from tpu_slices.domain.model.gangs import GANG
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.wire.gangs import gates_of
from tpu_slices.wire.leader_worker_sets import NAME as GROUPS_NAME
from tpu_slices.wire.workloads import JOBSET_NAME
from tpu_slices_cli.inside.kubectl import Json, Refused, items, run
from tpu_slices_cli.screen import confirmed, echo

AT_ONCE = 8
_GATES = json.dumps([{"$patch": "delete", "name": GANG}])
_STAYS = (
    "Pods that are made from now on are held again where a template has the gate, and by the admission policy and the "
    "webhook until these are deleted (infra/kubernetes/admission.yaml, webhook-configuration.yaml)."
)


@click.group(name="gangs")
def gangs_command() -> None:
    """Let pods of gangs go that wait for the provisioner."""


@dataclass(frozen=True, slots=True)
class Held:
    """A pod that the gate holds."""

    namespace: str
    name: str
    uid: str
    workload: str
    """KIND NAME of what it is of."""
    named: str
    """The name of that."""

    @property
    def shown(self) -> str:
        return f"{self.namespace}/{self.name}"


@gangs_command.command(name="open")
@click.argument("workloads", nargs=-1, metavar="[NAMESPACE/NAME]...")
@click.option("--all", "everything", is_flag=True, help="All pods of the cluster that are held.")
@click.option("--context", metavar="NAME", help="Of the kubeconfig; without it, its current one.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def open_command(*, workloads: tuple[str, ...], everything: bool, context: str | None, yes: bool) -> None:
    """Let the pods of workloads go that the scheduling gate of gangs holds, or with --all those of all.

    They then start as soon as there are hosts for them, whether or not the slices of their gang stand. It asks neither
    the relay nor the records, and is for a cluster that the provisioner leaves: nothing else lets these pods go then.
    kubectl does it, with your rights to patch pods.
    """
    if everything == bool(workloads):
        raise click.UsageError("name workloads as NAMESPACE/NAME, or use --all")
    if wrong := [each for each in workloads if len(each.split("/")) != len(("NAMESPACE", "NAME"))]:
        raise click.UsageError(f"{wrong[0]} is not NAMESPACE/NAME")
    held = [*_held(context, workloads)]
    if not held:
        echo("No pod is held: there is nothing to open.")
        return
    for (namespace, workload), pods in sorted(Counter((each.namespace, each.workload) for each in held).items()):
        echo(f"{workload} in {namespace}: {_counted(pods)} held")
    if confirmed(f"Open {_counted(len(held))}, whether or not their slices stand?", yes=yes):
        _open(held, context)


def _held(context: str | None, workloads: Collection[str]) -> Iterator[Held]:
    """Yield the pods that the gate holds, of all workloads if none is named."""
    for each in items(context, "pods", "--all-namespaces", "--field-selector", "status.phase=Pending"):
        if GANG in gates_of(each):
            metadata = each["metadata"]
            kind, name = _workload(metadata)
            if not workloads or f"{metadata['namespace']}/{name}" in workloads:
                yield Held(metadata["namespace"], metadata["name"], metadata["uid"], f"{kind} {name}", name)


def _workload(metadata: Json) -> tuple[str, str]:
    """Return the kind and the name of what a pod is of: itself, if nothing controls it."""
    labels = metadata.get("labels") or {}
    for kind, label in (("JobSet", JOBSET_NAME), ("LeaderWorkerSet", GROUPS_NAME)):
        if label in labels:
            return kind, labels[label]
    controllers = (each for each in metadata.get("ownerReferences") or () if each.get("controller"))
    controller = next(controllers, {"kind": "Pod", "name": metadata["name"]})
    return controller["kind"], controller["name"]


def _open(held: Sequence[Held], context: str | None) -> None:
    """Open pods, and say of each what became of it; Permanent: some are not open."""
    failed = 0
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for each, trouble in zip(held, threads.map(partial(_opened, context), held), strict=True):
            failed += bool(trouble)
            echo(f"{each.shown}: {trouble or 'opened'}", err=bool(trouble))
    echo(f"Opened: {_counted(len(held) - failed)}. {_STAYS}")
    if failed:
        raise Permanent(f"{_counted(failed)} could not be opened: run this again")


def _opened(context: str | None, pod: Held) -> str:
    """Open a pod, unless another one has its name by now; return why it is not open, empty: it is, or is gone."""
    patch = f'{{"metadata": {{"uid": "{pod.uid}"}}, "spec": {{"schedulingGates": {_GATES}}}}}'
    try:
        run(context, "patch", "pod", pod.name, "--namespace", pod.namespace, "--type", "strategic", "--patch", patch)
    except Refused as refused:
        return "" if "(NotFound)" in str(refused) else " ".join(str(refused).split())
    except Temporary as trouble:
        return str(trouble)
    return ""


def _counted(pods: int) -> str:
    return "1 pod" if pods == 1 else f"{pods} pods"
