"""The manifests that train: each is planned as it is, and says what its program needs on live hosts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.examples.cluster import SETTINGS
from tests.examples.stories import ACCOUNTS, TRAINING, jobsets_in
from tests.examples.test_images import BUILT
from tpu_slices_cli.app import main

Json = dict[str, Any]
MANIFESTS = jobsets_in(TRAINING)
HOSTS_OF_A_SLICE, METRICS, SLICES, JAX = 8471, 8431, 8080, 8482
REPLICATED: list[tuple[Json, Json]] = [
    (jobset, job)
    for manifest in MANIFESTS
    for jobset in yaml.safe_load_all(manifest.read_text())
    for job in jobset["spec"]["replicatedJobs"]
]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest.stem)
def test_a_manifest_is_planned_without_a_warning(manifest: Path) -> None:
    planned = CliRunner().invoke(main, ["plan", "-f", str(manifest), "--cluster", str(SETTINGS), "-o", "json"])
    assert planned.exit_code == 0, planned.stderr
    plan = json.loads(planned.stdout)
    assert (plan["warnings"], plan["skipped"], plan["invalid"]) == ([], [], [])
    slices = [job for jobset in yaml.safe_load_all(manifest.read_text()) for job in jobset["spec"]["replicatedJobs"]]
    assert len(plan["slices"]) == sum(job["replicas"] for job in slices if "nodeSelector" in pod_of(job))


@pytest.mark.parametrize(("jobset", "job"), REPLICATED, ids=lambda each: each.get("name") or each["metadata"]["name"])
def test_a_pod_has_the_ports_account_and_network_that_its_program_needs(jobset: Json, job: Json) -> None:
    assert jobset["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "tpu-training"
    pod = pod_of(job)
    (container,) = pod["containers"]
    own = container["image"].startswith(BUILT)
    assert pod.get("serviceAccountName") in (ACCOUNTS if own else [None])
    assert "hostNetwork" not in pod, "it would have the identity of the node"
    if "nodeSelector" in pod:
        several = {HOSTS_OF_A_SLICE, *({JAX} if own else ())} if job["template"]["spec"]["completions"] > 1 else set()
        needed = {METRICS, *several, *({SLICES} if job["replicas"] > 1 else ())}
        assert {port["containerPort"] for port in container["ports"]} == needed


def test_every_option_of_the_trainer_is_one_that_it_has() -> None:
    known = set(re.findall(r'add_argument\("(--[a-z]+)"', (TRAINING / "trainer" / "train.py").read_text()))
    containers = [pod_of(job)["containers"][0] for _, job in REPLICATED]
    given = {arg.partition("=")[0] for one in containers if "train.py" in one["command"] for arg in one["args"]}
    assert {"--data", "--output"} <= given <= known


def pod_of(job: Json) -> Json:
    pod: Json = job["template"]["spec"]["template"]["spec"]
    return pod
