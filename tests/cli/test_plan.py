"""`slices plan`: what each Job would get, and why not."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.conftest import RESEARCH, ROOT, Slices
from tests.world import World
from tpu_slices.adapters.gke.requests import as_rest
from tpu_slices.domain.catalogue.prices import PriceKind
from tpu_slices_cli.app import main
from tpu_slices_cli.settings_file import read_settings
from tpu_slices_simulator.fakes.backend import Verb

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
Json = dict[str, Any]


def a_jobset(**changes: Any) -> Json:
    example: Json = yaml.safe_load((ROOT / "examples" / "v5e.yaml").read_text())
    return {**example, **changes}


def pod_spec(jobset: Json) -> Json:
    spec: Json = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return spec


def planned(slices: Slices, *documents: Json, code: int = 0) -> list[Json]:
    text = "---\n".join(yaml.safe_dump(document) for document in documents)
    result = slices("plan", "-f", "-", "--cluster", RESEARCH, "-o", "json", input=text)
    assert result.exit_code == code, result.output
    found: list[Json] = json.loads(result.stdout)["slices"]
    return found


def refused_file(slices: Slices, text: str) -> str:
    result = slices("plan", "-f", "-", "--cluster", RESEARCH, input=text)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_gets_its_slices(slices: Slices, example: Path) -> None:
    result = slices("plan", "-f", example, "--cluster", RESEARCH, "-o", "json")
    assert result.exit_code == 0, result.output
    found = [(each["replicated_job"], each["job_index"]) for each in json.loads(result.stdout)["slices"]]
    workloads = [each for each in yaml.safe_load_all(example.read_text()) if each["kind"] != "Service"]
    assert found == [one for workload in workloads for one in slices_of(workload)]


def slices_of(workload: Json) -> list[tuple[str, int]]:
    """Return the replicated Job and the index of each slice that a workload is to get."""
    one = [{"name": "", "replicas": workload["spec"].get("replicas", 1)}]
    return [
        (job["name"], index)
        for job in workload["spec"].get("replicatedJobs", one)
        for index in range(1 if share_slice(workload, job) else job.get("replicas", 1))
    ]


def share_slice(workload: Json, job: Json) -> bool:
    """Return whether several Jobs of one pod are placed together."""
    if "annotations" in workload["metadata"] or "template" not in job:
        return False
    spec = job["template"]["spec"]
    return bool(job["replicas"] > 1 and (spec["parallelism"], spec["completionMode"]) == (1, "Indexed"))


def test_json_shows_the_node_pool_as_gkes_rest_api_does(slices: Slices) -> None:
    (only,) = planned(slices, a_jobset(metadata={"name": "v5e", "namespace": "research", "uid": "uid-1"}))
    pool = only.pop("node_pool")
    assert only == {
        "slice_id": "tpu-v5e-0-h4dviy4n5br3k",
        "kind": "JobSet",
        "name": "v5e",
        "namespace": "research",
        "replicated_job": "workers",
        "job_index": 0,
        "jobs": 1,
        "hosts": 4,
        "chips": 16,
        "price": {
            "usd_per_hour": None,
            **{f"{kind}_usd_per_hour": None for kind in PriceKind},
            "reserved": False,
            "read": None,
            "source": None,
        },
        "refused": None,
    }
    assert pool["name"] == f"{only['slice_id']}-1"
    assert pool["placementPolicy"] == {"type": "COMPACT", "tpuTopology": "4x4"}
    assert pool["config"]["machineType"] == "ct5lp-hightpu-4t"


SELF_MANAGED = """
path: projects/my-project/locations/us-central1
zone: us-central1-c
compute:
  image: projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2404-amd64-tpu-tpu7x
"""


@pytest.fixture
def self_managed(tmp_path: Path) -> Path:
    file = tmp_path / "metal.yaml"
    file.write_text(SELF_MANAGED)
    return file


def test_json_shows_the_requests_to_compute_engine_in_their_order(slices: Slices, self_managed: Path) -> None:
    example = ROOT / "examples" / "v6e-spot.yaml"
    result = slices("plan", "-f", example, "--cluster", self_managed, "-o", "json")
    assert result.exit_code == 0, result.output
    for each in json.loads(result.stdout)["slices"]:
        names = [request["body"]["name"] for request in each["requests"]]
        places = [request["path"].removeprefix("projects/my-project/") for request in each["requests"]]
        assert each["node_pool"] is None
        assert names == [f"{each['slice_id']}-1"] * 3
        assert places == [
            "regions/us-central1/resourcePolicies",
            "global/instanceTemplates",
            "zones/us-central1-c/instanceGroupManagers",
        ]


def test_the_table_of_a_self_managed_cluster_has_instance_groups(slices: Slices, self_managed: Path) -> None:
    result = slices("plan", "-f", ROOT / "examples" / "v6e-spot.yaml", "--cluster", self_managed)
    assert "INSTANCE GROUP" in result.stdout
    assert "node pool" not in result.output.lower()


def test_what_a_self_managed_cluster_cannot_have_is_refused_by_its_key(slices: Slices, self_managed: Path) -> None:
    example = ROOT / "examples" / "flex-start.yaml"
    result = slices("plan", "-f", example, "--cluster", self_managed, "-o", "json")
    assert result.exit_code == 3, result.output
    (only,) = json.loads(result.stdout)["slices"]
    assert (only["node_pool"], only["requests"]) == (None, None)
    assert "cloud.google.com/gke-flex-start" in only["refused"]["message"]


def test_a_refused_job_has_reason_and_message_and_no_pool(slices: Slices) -> None:
    jobset = a_jobset()
    pod_spec(jobset)["nodeSelector"]["cloud.google.com/gke-tpu-topology"] = "3x5"
    (only,) = planned(slices, jobset, a_jobset(), code=3)[:1]
    assert (only["hosts"], only["chips"], only["node_pool"]) == (None, None, None)
    assert only["refused"] == {
        "reason": "ImpossibleShape",
        "message": "replicatedJob workers: cloud.google.com/gke-tpu-topology: tpu-v5-lite-podslice has no 3x5: "
        "use 2x2, 2x4 or 4x4.",
    }


@pytest.mark.parametrize(
    ("namespace", "message"),
    [
        ("research", None),
        ("vision", "zones: us-central2-b is not allowed in namespace vision"),
        ("speech", "accelerators: tpu-v5-lite-podslice is not allowed in namespace speech"),
    ],
)
def test_the_policy_limits_zones_and_accelerators_by_namespace(
    slices: Slices, tmp_path: Path, namespace: str, message: str | None
) -> None:
    rules = {
        "zones": ["us-central2-a"],
        "namespaces": {
            "research": {"zones": ["us-central2-*"]},
            "speech": {"zones": ["*"], "accelerators": ["tpu-v6e-slice"]},
        },
    }
    file = tmp_path / "research.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(RESEARCH.read_text()), "policy": rules}))
    text = yaml.safe_dump(a_jobset())
    result = slices("plan", "-f", "-", "--cluster", file, "-n", namespace, "-o", "json", input=text)
    (only,) = json.loads(result.stdout)["slices"]
    if message is None:
        assert only["refused"] is None
    else:
        assert only["refused"]["reason"] == "NotAllowed"
        assert f"replicatedJob workers: {message}: policy." in only["refused"]["message"]


def test_the_plan_equals_what_the_functions_order(slices: Slices) -> None:
    world = World()
    world.store.put_settings(read_settings(ROOT / "infra" / "clusters" / "demo-project" / "demo.yaml").settings)
    jobset = world.jobset_appears(slices=2)
    world.settle(minutes=5)
    ordered = [world.backend.pools[name].order for name in world.backend.ordered(Verb.CREATE)]
    manifest = a_jobset(metadata={"name": "llama", "namespace": "research", "uid": jobset.ref.owner.uid})
    manifest["spec"]["replicatedJobs"][0].update(name="slice", replicas=2)
    pod = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["nodeSelector"]["cloud.google.com/gke-tpu-accelerator"] = "tpu-v6e-slice"
    text = yaml.safe_dump(manifest)
    demo = ROOT / "infra" / "clusters" / "demo-project" / "demo.yaml"
    result = slices("plan", "-f", "-", "--cluster", demo, "-o", "json", input=text)
    pools = [each["node_pool"] for each in json.loads(result.stdout)["slices"]]
    expected = [json.loads(json.dumps(as_rest(order))) for order in ordered if order]
    assert sorted(pools, key=lambda pool: pool["name"]) == sorted(expected, key=lambda pool: pool["name"])


def test_lists_folders_json_and_several_files_are_read(slices: Slices, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [a_jobset()] * 2}))
    (tmp_path / "b.json").write_text(json.dumps(a_jobset()))
    result = slices("plan", "-f", tmp_path, "-f", tmp_path / "b.json", "--cluster", RESEARCH, "-o", "yaml")
    assert len(yaml.safe_load(result.stdout)["slices"]) == 4


def a_pod(**labels: str) -> Json:
    own = {
        "jobset.sigs.k8s.io/jobset-name": "v5e",
        "jobset.sigs.k8s.io/replicatedjob-name": "workers",
        "jobset.sigs.k8s.io/job-index": "3",
        "batch.kubernetes.io/job-completion-index": "0",
    }
    metadata = {"name": "v5e-workers-3-0", "namespace": "research", "labels": {**own, **labels}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(a_jobset())}


def test_a_leader_pod_is_planned_as_its_job(slices: Slices) -> None:
    (only,) = planned(slices, a_pod())
    assert (only["name"], only["replicated_job"], only["job_index"]) == ("v5e", "workers", 3)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        pytest.param(
            a_pod(**{"batch.kubernetes.io/job-completion-index": "1"}),
            "document 1: Pod v5e-workers-3-0 belongs to JobSet v5e, whose Jobs get the slices: plan that one",
            id="a follower",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Service", "metadata": {}},
            "skipped 1 document that requests no TPU: Service",
            id="a Service",
        ),
        pytest.param(
            a_jobset(spec={**a_jobset()["spec"], "managedBy": "kueue.x-k8s.io/multikueue"}),
            'document 1: JobSet v5e: spec.managedBy is "kueue.x-k8s.io/multikueue"',
            id="another controller's",
        ),
    ],
)
def test_a_document_that_requests_no_slice_is_skipped_with_a_message(slices: Slices, document: Json, why: str) -> None:
    text = "---\n".join(map(yaml.safe_dump, [document, a_jobset()]))
    result = slices("plan", "-f", "-", "--cluster", RESEARCH, input=text)
    assert result.exit_code == 0
    assert why in result.stderr
    assert "1 slice, 4 hosts, 16 chips" in result.stdout


def without(*path: str | int) -> str:
    document = copy.deepcopy(a_jobset())
    *most, last = path
    inner: Any = document
    for key in most:
        inner = inner[key]
    del inner[last]
    return yaml.safe_dump(document)


TEMPLATE = ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "standard input: cannot be parsed: ", id="half a brace"),
        pytest.param("a: [", "standard input: cannot be parsed: ", id="half a list"),
        pytest.param("- 1", "standard input: expected an object with apiVersion and kind, found: list", id="a list"),
        pytest.param("kind: JobSet", "standard input: apiVersion is missing", id="no version"),
        pytest.param("apiVersion: v1\nkind: Pod", "standard input: metadata is missing", id="no metadata"),
        pytest.param("", "-: contains no manifest", id="nothing"),
        pytest.param("a: 1\na: 2", "duplicate key a", id="a key that is there twice"),
        pytest.param(without("spec"), "spec.replicatedJobs is missing", id="no spec"),
        pytest.param(without("metadata", "name"), "metadata.name is missing", id="no name"),
        pytest.param(without(*TEMPLATE, "containers"), "containers is missing", id="no containers"),
        pytest.param(without(*TEMPLATE[:4]), "template is missing", id="no template"),
        pytest.param(
            yaml.safe_dump(a_jobset(apiVersion="jobset.x-k8s.io/v1")), "jobset.x-k8s.io/v1 is not supported", id="v1"
        ),
        pytest.param(
            yaml.safe_dump(a_jobset()).replace("topology: 4x4", "topology: 44"), "44 must be a string", id="a number"
        ),
        pytest.param(
            yaml.safe_dump(a_jobset()).replace("google.com/tpu: 4", "google.com/tpu: four"), "four", id="four chips"
        ),
    ],
)
def test_a_malformed_file_is_an_error_of_one_line(slices: Slices, text: str, message: str) -> None:
    assert message in refused_file(slices, text)


def test_more_jobs_than_the_limit_are_not_planned(slices: Slices) -> None:
    jobset = a_jobset()
    jobset["spec"]["replicatedJobs"][0]["replicas"] = 2**31 - 1
    assert "2147483647 slices together, at most 2000 of a JobSet are supported" in refused_file(
        slices, yaml.safe_dump(jobset)
    )


def test_an_error_names_the_document_by_its_number(slices: Slices) -> None:
    text = "---\n".join([without("spec"), without("metadata", "name")])
    result = slices("plan", "-f", "-", "--cluster", RESEARCH, input=text)
    assert [line.rpartition(": ")[0] for line in result.stderr.splitlines()] == [
        "invalid: standard input: document 1",
        "invalid: standard input: document 2",
    ]


def test_a_missing_file_and_invalid_settings_are_errors(slices: Slices, tmp_path: Path) -> None:
    result = slices("plan", "-f", tmp_path / "none.yaml", "--cluster", RESEARCH)
    assert (result.exit_code, "none.yaml: cannot be read" in result.stderr) == (2, True)
    broken = tmp_path / "broken.yaml"
    broken.write_text("zone: somewhere")
    result = slices("plan", "-f", EXAMPLES[0], "--cluster", broken)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"{broken}: path: Required value: must be the cluster's full name")


def test_the_table_ends_with_refusals_and_a_summary(slices: Slices) -> None:
    result = slices("plan", "-f", ROOT / "examples" / "demo", "--cluster", RESEARCH)
    assert result.exit_code == 3
    head, *_, message, summary, _ = result.stdout.splitlines()
    assert head.split() == ["JOB", "SLICE", "HOSTS", "CHIPS", "CAPACITY", "ZONE", "USD/H", "NODE", "POOL"]
    assert message.startswith("default/impossible-workers-0: replicatedJob workers: ")
    assert "; 1 refused. Some workloads are not created yet: " in summary


def test_nothing_is_told_of_the_names_of_pools_if_all_is_refused(slices: Slices) -> None:
    result = slices("plan", "-f", ROOT / "examples" / "refused" / "impossible-shape.yaml")
    assert result.stdout.splitlines()[-1] == "0 slices, 0 hosts, 0 chips; 1 refused."


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))]


JUNK = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.just([]), st.just({}))


@pytest.mark.slow
@settings(max_examples=25)
@given(st.sampled_from([place for place in places(a_jobset()) if place]), JUNK)
def test_no_broken_manifest_leads_to_a_traceback(place: tuple[str | int, ...], junk: Any) -> None:
    document = copy.deepcopy(a_jobset())
    *most, last = place
    inner: Any = document
    for key in most:
        inner = inner[key]
    inner[last] = junk
    arguments = ["plan", "-f", "-", "--cluster", str(RESEARCH), "-o", "json"]
    result = CliRunner().invoke(main, arguments, input=yaml.safe_dump(document))
    assert result.exit_code in {0, 2, 3}, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code != 2 or len(result.stderr.splitlines()) == 1
