"""What `slices plan` warns of: versions of JobSet that place pods wrongly, and pods that nothing keeps together."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.cli.conftest import RESEARCH, ROOT, Slices
from tests.cli.test_plan import a_jobset

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
BY_NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
POOL = "cloud.google.com/gke-nodepool"


def warned(slices: Slices, *annotations: str, on_job: bool = False, **job: int | None) -> list[str]:
    """Return the warnings about a JobSet or a Job with these annotations, whose Job has other fields."""
    jobset = a_jobset()
    template = jobset["spec"]["replicatedJobs"][0]["template"]
    template["spec"] = {key: value for key, value in {**template["spec"], **job}.items() if value is not None}
    template["metadata"] = {"annotations": dict.fromkeys(annotations, POOL)} if on_job else {}
    jobset["metadata"]["annotations"] = {} if on_job else dict.fromkeys(annotations, POOL)
    result = slices("plan", "-f", "-", "--cluster", RESEARCH, "-o", "json", input=yaml.safe_dump(jobset))
    assert result.exit_code == 0, result.output
    found: list[str] = json.loads(result.stdout)["warnings"]
    shown = slices("plan", "-f", "-", "--cluster", RESEARCH, input=yaml.safe_dump(jobset))
    assert ("warning: " in shown.stderr) == bool(found)
    return found


@pytest.mark.parametrize("on_job", [False, True], ids=["of the JobSet", "of the Job"])
def test_placement_by_node_selector_is_warned_of_where_jobset_deletes_followers(slices: Slices, on_job: bool) -> None:
    (warning,) = warned(slices, EXCLUSIVE, BY_NODE_SELECTOR, on_job=on_job)
    assert warning.startswith("JobSet v5e, replicatedJob workers: JobSet's versions after 0.12 delete")
    assert f"remove the annotation {BY_NODE_SELECTOR}" in warning


@pytest.mark.parametrize("retries", [1, None], ids=["some", "the default"])
def test_retries_of_exclusively_placed_pods_are_warned_of(slices: Slices, retries: int | None) -> None:
    (warning,) = warned(slices, EXCLUSIVE, backoffLimit=retries)
    assert "set backoffLimit to 0" in warning


def test_nothing_is_warned_of_where_no_version_of_jobset_goes_wrong(slices: Slices) -> None:
    assert warned(slices, EXCLUSIVE, backoffLimit=0) == []


@pytest.mark.parametrize("annotations", [(), (BY_NODE_SELECTOR,)], ids=["none", "a strategy without a topology"])
def test_pods_of_a_job_that_nothing_keeps_together_are_warned_of(slices: Slices, annotations: tuple[str, ...]) -> None:
    (warning,) = warned(slices, *annotations, backoffLimit=0)
    assert warning.startswith(
        "JobSet v5e, replicatedJob workers: only the admission policy or the webhook keeps its pods on"
    )
    assert warning.endswith(f"it is refused, unless you create the JobSet with the annotation {EXCLUSIVE}: {POOL}")
    assert "`slices doctor`" in warning


def test_a_job_of_one_pod_has_nothing_to_keep_together(slices: Slices) -> None:
    one = yaml.safe_load((ROOT / "examples" / "v6e-one-chip.yaml").read_text())
    del one["metadata"]["annotations"]
    result = slices("plan", "-f", "-", "--cluster", RESEARCH, "-o", "json", input=yaml.safe_dump(one))
    assert (result.exit_code, json.loads(result.stdout)["warnings"]) == (0, [])
