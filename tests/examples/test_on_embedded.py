"""Every example that a cluster without admission policies and LeaderWorkerSets has, on the embedded API server.

Nothing there keeps the pods of Jobs apart that have one shape: they may come to slices of each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from infra.local.cluster_choice import Embedded
from infra.local.plan import Plan
from infra.local.stack import running
from tests.examples.cluster import FAST, Cluster, asked_by_a_user, seed
from tests.examples.stories import EXAMPLES, FOLDER, JOBS_OF_ONE_POD, V4
from tests.examples.test_examples import jobset_of
from tpu_standins.prerequisites import Tools

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.proof]
JOB = FOLDER / "indexed-job.yaml"
UNPINNED = [each for each in EXAMPLES if each != JOBS_OF_ONE_POD]
"""Those that are served where nothing pins pods."""


@pytest.fixture(scope="module")
def embedded(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    state = tmp_path_factory.mktemp("embedded-examples")
    plan = Plan(state=state, sweep_seconds=10, cluster=Embedded(), queues=True, gke_arguments=FAST)
    with running(plan, seed) as stack, asked_by_a_user(stack, tools) as found:
        found.kubectl("apply", *(part for example in UNPINNED for part in ("-f", str(example))))
        yield found


@pytest.mark.parametrize("example", UNPINNED, ids=lambda example: example.stem)
def test_an_example_completes(embedded: Cluster, example: Path) -> None:
    embedded.until_over(jobset_of(example)["metadata"]["name"])


def test_a_job_completes(embedded: Cluster) -> None:
    """It comes when nobody of its shape is there: its pods and those of a JobSet would keep hosts from each other."""
    jobset = jobset_of(V4)["metadata"]["name"]
    embedded.until_over(jobset)
    owned = f"google.com/tpu-slice-owner-uid={embedded.get('jobsets', jobset)['metadata']['uid']}"
    embedded.until(lambda: not embedded.items("nodes", owned))
    embedded.kubectl("apply", "-f", str(JOB))
    (job,) = (each for each in yaml.safe_load_all(JOB.read_text()) if each["kind"] == "Job")
    name, pods = job["metadata"]["name"], job["spec"]["completions"]
    embedded.until(lambda: embedded.get("jobs", name).get("status", {}).get("succeeded") == pods)


def test_no_host_of_them_is_left(embedded: Cluster) -> None:
    for example in UNPINNED:
        embedded.until_over(jobset_of(example)["metadata"]["name"])
    embedded.until(lambda: not embedded.items("nodes", "google.com/tpu-slice-owner-uid"))
