"""What is planned of a stack on Compute Engine, and what its user is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.local.plan import Plan
from infra.local.stack import allotted, local_compute
from tpu_standins.compute.booting.host import cannot_be_used

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def options(plan: Plan) -> tuple[str, ...]:
    """Return the command of the local Compute Engine."""
    return local_compute(plan, allotted(plan, ())).command


def test_hosts_run_their_startup_script_and_it_is_said() -> None:
    plan = Plan(compute=True)
    assert "Hosts that join by kubeadm run the startup script" in plan.told
    assert "--startup-script" in options(plan)


def test_where_they_cannot_it_is_said_why_and_none_does() -> None:
    plan = Plan(compute=True, unbooted="no mount namespace of one's own")
    assert plan.told.endswith("without their startup script, which cannot run here: no mount namespace of one's own.")
    assert "--startup-script" not in options(plan)


def test_a_program_that_is_missing_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cannot_be_used() == "setpriv is missing: apt-get install util-linux"
