"""What a person does about TPU operator when its slices are adopted: it is stopped first, and its objects go last.

The command `slices` does not reach clusters. Who moves one is its administrator, and runs what is printed here.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tpu_slices.domain.planning.tpu_operator import FINALIZERS
from tpu_slices.domain.reconciling.adoption import ALREADY_ADOPTED, Adoption
from tpu_slices.domain.reconciling.group_adoption import OperatorGroup
from tpu_slices.wire.operator_objects import (
    OPERATOR,
    OPERATOR_NAMESPACE,
    PARTS,
    operator_groups,
    running_operator,
    shows_operator,
)
from tpu_slices.wire.workloads import Json

_SCALE = f"kubectl -n {OPERATOR_NAMESPACE} scale deployment {OPERATOR} --replicas 0"
_SHOW = f"kubectl -n {OPERATOR_NAMESPACE} get deployments,pods -o json > operator.json"
_GROUPS = "tpunodegroups.tpu.google.com"


def running_or_unknown(objects: Sequence[Json], *, stopped: bool) -> str | None:
    """Return why TPU operator may run, with what to do; None if it does not, as the objects show or a person says."""
    running = ", ".join(running_operator(objects))
    if running:
        return f"TPU operator runs ({running}): `{_SCALE}`, wait until its pod is gone, then read everything again"
    if stopped or shows_operator(objects):
        return None
    return (
        f"no FILE shows whether TPU operator runs: add `-f operator.json` of `{_SHOW}`; if it is uninstalled, or runs "
        "under another name and was stopped, say --operator-stopped"
    )


def commands(objects: Sequence[Json], adoptions: Iterable[Adoption]) -> Iterator[str]:
    """Yield a shell script that takes TPU operator's finalizers, and its objects about parts, from adopted groups.

    What is not adopted is left to TPU operator, and named in a comment.
    """
    groups = {(each.ref.owner.namespace, each.ref.owner.name): each for each in operator_groups(objects)}
    yield "set -eu"
    for adoption in adoptions:
        group = groups[adoption.pool.namespace, adoption.pool.jobset]
        if adoption.why == ALREADY_ADOPTED:
            yield from _freed(group)
        else:
            why = "it is not adopted yet: run this without --handover first" if adoption.record else adoption.why
            yield f"# {group.ref.owner.full_name} is left to TPU operator: {' '.join(why.split())}"


def _freed(group: OperatorGroup) -> Iterator[str]:
    owner = group.ref.owner
    for part in group.parts:
        kind = f"{PARTS[part.kind]}.tpu.google.com"
        yield _patch(kind, part.name, owner.namespace, {"finalizers": None})
        yield f"kubectl delete {kind} {part.name} --namespace {owner.namespace} --wait=false"
    others = [each for each in group.finalizers if each not in FINALIZERS]
    if len(others) < len(group.finalizers):
        version = {"resourceVersion": group.ref.resource_version, "finalizers": others}
        yield _patch(_GROUPS, owner.name, owner.namespace, version)


def _patch(kind: str, name: str, namespace: str, metadata: Mapping[str, Any]) -> str:
    patch = shlex.quote(json.dumps({"metadata": metadata}, separators=(",", ":")))
    return f"kubectl patch {kind} {name} --namespace {namespace} --type merge --patch {patch}"
