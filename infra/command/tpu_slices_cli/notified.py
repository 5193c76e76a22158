"""Who is notified of the workloads of a plan, and which names in their annotations are no targets. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpu_slices.domain.model.notifications import unknown_targets
from tpu_slices.domain.reporting.notifications import told_as
from tpu_slices.wire.jobsets import notify_of
from tpu_slices.wire.tpu_objects import name_of
from tpu_slices_cli.manifests import Invalid, Manifest
from tpu_slices_cli.planning import Planned


@dataclass(frozen=True, slots=True)
class Told:
    """What is told outside the cluster."""

    lines: tuple[str, ...]
    warnings: tuple[str, ...]


def told(documents: Iterable[Manifest | Invalid], planned: Sequence[Planned], namespace: str) -> Told:
    """Return a line for each workload and target that is notified of it, and what is wrong in annotations.

    Nothing is said of pods that a Deployment makes: their template has their annotation.
    """
    written = {_place(each.body, namespace): each.body for each in documents if isinstance(each, Manifest)}
    lines, wrong = dict[str, None](), dict[str, None]()
    for owner, settings in {each.job.owner: each.settings for each in planned}.items():
        body = written.get((owner.kind.value, owner.namespace, owner.name))
        if body is None:
            continue
        rules = settings.notifications.get(owner.namespace, {})
        annotation = "" if owner.kind.declares else notify_of(body)
        lines |= {f"{owner.kind} {owner.name}: {line}.": None for line in told_as(rules, annotation)}
        if unknown := unknown_targets(rules, annotation):
            wrong[f"{owner.kind} {owner.name}: {unknown}"] = None
    return Told(tuple(lines), tuple(wrong))


def _place(body: Mapping[str, Any], namespace: str) -> tuple[str, str, str]:
    metadata = body.get("metadata") or {}
    return (
        str(body.get("kind")),
        str(metadata.get("namespace") or namespace),
        str(metadata.get("name") or name_of(metadata)),
    )
