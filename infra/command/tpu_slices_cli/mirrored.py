"""`slices list --from-cluster`: what the mirror in a cluster shows, read by kubectl with its user's rights alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import click
import yaml
from rich.table import Table
from rich.text import Text

from tpu_slices.domain.model.reasons import Phase
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices_cli.inside.kubectl import Json, Refused, items
from tpu_slices_cli.screen import console, echo
from tpu_slices_cli.words import span

GROUP = "tpu-provisioner.cloud.google.com"
OLD = timedelta(minutes=3)
"""Without a confirmation for longer than that the relay, or the functions, are not heard."""
_TITLES = ("NAMESPACE", "JOB", "SLICE", "PHASE", "HOSTS", "REASON", "USD/H", "SINCE")
_WIDE = ("POOL", "SPEC", "PLACE")
_DENIED = ("PERMISSION_DENIED", "403", "credentials were not found", "Reauthentication", "401")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which objects are listed."""

    context: str | None
    """Of the kubeconfig; None: its current one."""
    namespace: str | None = None
    owner: str | None = None
    names: Collection[str] = ()
    phases: Collection[Phase] = ()

    def matches(self, each: Json) -> bool:
        status, metadata = each["status"], each["metadata"]
        workload, namespace = status.get("workload") or {}, metadata["namespace"]
        names = {metadata["name"], workload.get("name"), f"{namespace}/{workload.get('name')}"}
        names |= {status.get("job"), f"{namespace}/{status.get('job')}"}
        return (
            self.owner in {None, workload.get("name")}
            and (not self.names or not names.isdisjoint(self.names))
            and (not self.phases or status.get("phase") in self.phases)
        )


def list_mirrored(asked: Asked, output: str, *, more: bool, now: datetime | None = None) -> None:
    """Print the slices that the mirror shows, and how old that knowledge is; Permanent: there is no mirror.

    `more`: whether the user asks for what only the records have.
    """
    if more:
        raise click.UsageError(
            "--from-cluster has no --watch, --all, --sort-by or --cluster: see `kubectl get tpuslices --watch`"
        )
    now = now or datetime.now(UTC)
    within = ("-n", asked.namespace) if asked.namespace else ("-A",)
    found = [each for each in _objects(f"tpuslices.{GROUP}", asked, *within) if asked.matches(each)]
    found.sort(key=_order)
    confirmed = [_time(each["status"].get("confirmedAt")) for each in _objects(f"tpumirrors.{GROUP}", asked)]
    last, machine = max(filter(None, confirmed), default=None), output in {"json", "yaml"}
    if machine:
        listed = {"confirmed_at": last.isoformat() if last else None, "slices": [*map(_document, found)]}
        as_yaml = yaml.safe_dump(listed, sort_keys=False).rstrip()
        click.echo(json.dumps(listed, indent=2) if output == "json" else as_yaml)
    elif found:
        console().print(_table(found, now, wide=output == "wide"))
    else:
        echo("No slices found.", err=True)
    echo(_age(last, now), err=machine)


@contextmanager
def offered_instead() -> Iterator[None]:
    """Raise the errors of somebody who may not read Firestore with what they can do."""
    try:
        yield
    except Temporary as error:
        if not any(word in str(error) for word in _DENIED):
            raise
        way = "Whoever may not read Firestore reads the cluster itself: `slices list --from-cluster`"
        raise Temporary(f"{str(error).rstrip('.')}. {way}") from error


def _age(confirmed: datetime | None, now: datetime) -> str:
    if confirmed is None:
        return "Whether this is as things are is not known: nothing in the cluster says so yet."
    if now - confirmed <= OLD:
        return f"As of {span(now - confirmed)} ago."
    return (
        f"Not confirmed for {span(now - confirmed)}, since {confirmed:%Y-%m-%d %H:%M} UTC: the relay or the functions "
        "may be away, or much changes. What is shown was true then."
    )


def _table(found: Sequence[Json], now: datetime, *, wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (*_TITLES, *(_WIDE if wide else ()), "MESSAGE"):
        table.add_column(title, overflow="fold", no_wrap=title in {"PHASE", "HOSTS", "SINCE", "USD/H"})
    for each in found:
        status, metadata = each["status"], each["metadata"]
        since = _time(status.get("since"))
        spec = f"{status.get('accelerator', '')} {status.get('topology', '')}: {status.get('zone', '')}"
        made = status.get("nodePool", ""), f"{spec}, {status.get('capacity', '')}", status.get("place", "")
        more = made if wide else ()
        table.add_row(
            metadata["namespace"],
            status.get("job", ""),
            metadata["name"],
            Text(status.get("phase", "")),
            status.get("hosts", ""),
            status.get("reason", ""),
            status.get("usdPerHour", ""),
            span(now - since) if since else "",
            *more,
            status.get("message", ""),
        )
    return table


def _order(each: Json) -> tuple[str, str, str]:
    return each["metadata"]["namespace"], each["status"].get("job", ""), each["metadata"]["name"]


def _document(each: Json) -> Json:
    return {"namespace": each["metadata"]["namespace"], "name": each["metadata"]["name"], **each["status"]}


def _objects(resource: str, asked: Asked, *arguments: str) -> Iterator[Json]:
    """Yield the objects of a kind, as kubectl reads them; Permanent with what can be done if it cannot."""
    try:
        for each in items(asked.context, resource, *arguments):
            yield {**each, "status": each.get("status") or {}}
    except Refused as refused:
        raise Permanent(_why(str(refused), resource, asked)) from refused


def _why(error: str, resource: str, asked: Asked) -> str:
    """Return why kubectl failed, with what can be done about it."""
    said = " ".join(error.split())
    if "the server doesn't have a resource type" in error:
        return f"the cluster keeps no mirror, as it has no {resource}: its operator applies the relay's manifests anew"
    if "Forbidden" in error and asked.namespace is None and resource.startswith("tpuslices"):
        return f"{said}. Use --namespace with one that you may view"
    return said


def _time(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
