"""`slices list --from-cluster`: what the mirror shows, read by a kubectl that answers what it is told to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from relay.mirror.objects import confirmation, object_of
from tests.builders import CLUSTER, NOW, a_job, a_record, an_owner
from tests.cli.stage import Stage
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.records.mirror import mirrored
from tpu_slices.ports.errors import Temporary
from tpu_slices_cli.mirrored import offered_instead

READY = a_record().transitioned(NOW, Reason.READY, "All 4 hosts are ready.")
QUEUED = a_record(job=a_job(owner=an_owner("gemma"), job_index=1))
GROUP = "tpu-provisioner.cloud.google.com"
Says = Callable[..., None]


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Says:
    """Return what lets kubectl answer with an error, or with slices, confirmed so long ago."""
    program = tmp_path / "kubectl"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def says(error: str = "", confirmed: timedelta | None = timedelta(seconds=40)) -> None:
        slices = [object_of(replace(mirrored(each), price="43.20"), NOW) for each in (READY, QUEUED)]
        mirrors = [] if confirmed is None else [confirmation(CLUSTER, datetime.now(UTC) - confirmed)]
        (tmp_path / "slices").write_text(json.dumps({"items": slices}))
        (tmp_path / "mirrors").write_text(json.dumps({"items": mirrors}))
        (tmp_path / "error").write_text(error)
        answer = 'cat error >&2; case "$*" in *tpuslices*) cat slices;; *) cat mirrors;; esac'
        code = 1 if error else 0
        program.write_text(f'#!/bin/sh\ncd {tmp_path}\necho "$*" >> asked\n{answer}\nexit {code}\n')
        program.chmod(0o755)

    says()
    return says


@pytest.mark.usefixtures("kubectl")
def test_the_slices_are_listed_as_from_the_records_without_reading_these() -> None:
    shown = Stage().output_of("list", "--from-cluster", "-o", "wide")
    for each in ("llama-slice-0", "43.20", "QUEUED", "tpu-v6e-slice 4x4"):
        assert each in shown
    assert "As of 40 s ago." in shown or "As of 41 s ago." in shown


@pytest.mark.usefixtures("kubectl")
@pytest.mark.parametrize(
    "chosen", [("--phase", "ready"), ("llama",), ("research/llama-slice-0",), ("--owner", "llama")]
)
def test_the_slices_are_chosen_by_the_same_options(chosen: tuple[str, ...]) -> None:
    shown = json.loads(Stage().output_of("list", "--from-cluster", *chosen, "-o", "json"))["slices"]
    assert [(each["job"], each["phase"]) for each in shown] == [("llama-slice-0", "READY")]


def test_the_namespace_and_the_context_are_those_of_kubectl(kubectl: Says, tmp_path: Path) -> None:
    kubectl()
    Stage().output_of("list", "--context", "prod", "-n", "research")
    first, second = (tmp_path / "asked").read_text().splitlines()
    assert first == f"--context prod get tpuslices.{GROUP} -n research --output json"
    assert second == f"--context prod get tpumirrors.{GROUP} --output json"


@pytest.mark.parametrize(
    ("confirmed", "told"),
    [(timedelta(minutes=20), "Not confirmed for 20 m"), (None, "Whether this is as things are is not known")],
)
def test_what_nobody_confirmed_lately_is_said_to_be_old(kubectl: Says, confirmed: timedelta | None, told: str) -> None:
    kubectl(confirmed=confirmed)
    assert told in Stage().output_of("list", "--from-cluster")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ('error: the server doesn\'t have a resource type "tpuslices"', "the cluster keeps no mirror"),
        ("Error from server (Forbidden): tpuslices is forbidden", "Use --namespace with one that you may view"),
        ("error: You must be logged in to the server", "You must be logged in to the server"),
    ],
)
def test_why_it_cannot_be_read_is_said_with_what_can_be_done(kubectl: Says, error: str, told: str) -> None:
    kubectl(error=error)
    result = Stage().slices("list", "--from-cluster")
    assert result.exit_code == 1
    assert told in result.output


@pytest.mark.parametrize("option", ["--watch", "--all", "--sort-by=since"])
def test_what_only_the_records_have_is_refused_with_another_way(option: str) -> None:
    result = Stage().slices("list", "--from-cluster", option)
    assert result.exit_code == 2
    assert "kubectl get tpuslices --watch" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("error", "offered"),
    [
        ("Firestore: 403 Missing or insufficient permissions.", True),
        ("Firestore: Your default credentials were not found.", True),
        ("Firestore: 503 unavailable", False),
    ],
)
def test_who_may_not_read_firestore_is_told_of_this_way(error: str, offered: bool) -> None:
    with pytest.raises(Temporary) as raised, offered_instead():
        raise Temporary(error)
    assert ("`slices list --from-cluster`" in str(raised.value)) is offered
