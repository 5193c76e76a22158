"""`slices plan` of what real folders hold: each document has its answer, and none ends the run."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import RESEARCH, ROOT, Slices
from tpu_slices.domain.catalogue.accelerators import CATALOGUE

Json = dict[str, Any]
EXAMPLE = (ROOT / "examples" / "v5e.yaml").read_text()
OPTED_OUT = "tpu-provisioner.cloud.google.com/disable-autoprovisioning"
HELM = "{{- if .Values.tpu }}\nkind: JobSet\nmetadata:\n  name: {{ .Release.Name }}\n{{- end }}\n"
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "server", "namespace": "serving"},
    "spec": {"template": {"spec": {"containers": [{"name": "main", "resources": {"limits": {"google.com/tpu": 4}}}]}}},
}


def a_jobset() -> Any:
    return yaml.safe_load(EXAMPLE)


def template_of(jobset: Any) -> Any:
    return jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]


def planned(slices: Slices, *texts: str, code: int = 0) -> Json:
    result = slices("plan", "-f", "-", "--cluster", RESEARCH, "-o", "json", input="---\n".join(texts))
    assert result.exit_code == code, result.output
    found: Json = json.loads(result.stdout)
    return found


def dump(*documents: Any) -> list[str]:
    return [yaml.safe_dump(document) for document in documents]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        pytest.param(
            "t.yaml",
            HELM,
            "cannot be parsed: line 1 has the placeholder {{- if .Values.tpu }}: fill it in first, as with `helm "
            "template` or `envsubst`",
            id="Helm's",
        ),
        pytest.param(
            "t.yaml",
            EXAMPLE.replace("topology: 4x4", 'topology: "${TOPOLOGY}"').replace("name: v5e", "name: $NAME"),
            "metadata.name: $NAME, spec.replicatedJobs[0].template.spec.template.spec.nodeSelector"
            "[cloud.google.com/gke-tpu-topology]: ${TOPOLOGY}: placeholders: fill them in first, as with `helm "
            "template` or `envsubst`",
            id="envsubst's",
        ),
        pytest.param(
            "t.yaml",
            EXAMPLE.replace("google.com/tpu: 4", "google.com/tpu: '{{ chips }}'"),
            "{{ chips }}: a placeholder: fill it in first",
            id="Jinja's, in quotes",
        ),
        pytest.param(
            "t.yaml",
            EXAMPLE.replace("topology: 4x4", "topology: [${TOPOLOGY}, ${X}]"),
            "has the placeholder ${TOPOLOGY}: fill it in first",
            id="in YAML's brackets",
        ),
        pytest.param(
            "kustomization.yaml",
            "resources: [train.yaml]",
            "a kustomization, not a manifest: plan what `kubectl kustomize FOLDER` prints",
            id="a kustomization",
        ),
        pytest.param(
            "k.yaml",
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization",
            "a kustomization, not a manifest",
            id="a kustomization with its kind",
        ),
        pytest.param(
            "values.yaml", "tpu: true", "a part of a Helm chart, not a manifest: plan what `helm", id="Helm's values"
        ),
    ],
)
def test_an_invalid_file_is_named_with_the_remedy_and_the_others_are_planned(
    slices: Slices, tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "train.yaml").write_text(EXAMPLE)
    result = slices("plan", "-f", tmp_path, "--cluster", RESEARCH, "-o", "json")
    assert result.exit_code == 2, result.output
    found = json.loads(result.stdout)
    ((invalid,), (only,)) = found["invalid"], found["slices"]
    assert invalid["where"] == str(tmp_path / name)
    assert message in invalid["message"]
    assert only["name"] == "v5e"
    assert result.stderr == f"invalid: {invalid['where']}: {invalid['message']}\n"
    assert "1 slice, 4 hosts, 16 chips" in slices("plan", "-f", tmp_path, "--cluster", RESEARCH).stdout


def test_a_document_that_cannot_be_parsed_does_not_end_its_stream(slices: Slices) -> None:
    found = planned(slices, "# a comment\n", EXAMPLE, "name: {{ x }}\n", "a: [\n", EXAMPLE, code=2)
    assert len(found["slices"]) == 2
    lines = len(EXAMPLE.splitlines())  # a comment and a separator are before them
    assert [each["where"] for each in found["invalid"]] == [
        "standard input: document 2",
        "standard input: document 3",
    ]
    assert f"line {lines + 4} has the placeholder {{{{ x }}}}" in found["invalid"][0]["message"]
    assert f"line {lines + 7}, column 1" in found["invalid"][1]["message"]


def test_an_invalid_item_does_not_end_its_list(slices: Slices) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [{"kind": "JobSet"}, a_jobset()]}
    found = planned(slices, *dump(listed), code=2)
    assert found["invalid"] == [{"where": "standard input: item 1", "message": "apiVersion is missing"}]
    assert len(found["slices"]) == 1


def test_what_a_shell_or_a_server_fills_in_is_no_placeholder(slices: Slices) -> None:
    jobset = a_jobset()
    container = template_of(jobset)["spec"]["containers"][0]
    container["command"] = ["sh", "-c", "echo ${TPU_WORKER_ID} $HOME"]
    container["args"] = ["--chat-template={{ messages }}"]
    container["env"] = [{"name": "A", "value": "${B}"}]
    jobset["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "${TPU_WORKER_ID}"}
    container["workingDir"] = "/data/$(HOST)"
    assert len(planned(slices, *dump(jobset))["slices"]) == 1


def test_json_has_what_was_skipped_and_why(slices: Slices) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server"}}
    found = planned(slices, *dump(DEPLOYMENT, service, a_jobset()))
    assert [(each["kind"], each["namespace"], each["name"], each["reason"]) for each in found["skipped"]] == [
        ("Deployment", "serving", "server", "NotServed"),
        ("Service", None, "server", "RequestsNoTpu"),
    ]
    assert found["skipped"][0]["message"].startswith("Deployment server gets no slice: its pods come and go")
    assert found["skipped"][0]["where"] == "standard input: document 1"
    assert found["skipped"][1]["message"] == "Service server requests no TPU chips"


def test_a_single_pod_has_its_answer_in_json(slices: Slices) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "try"},
        "spec": DEPLOYMENT["spec"]["template"]["spec"],  # type: ignore[index]
    }
    found = planned(slices, *dump(pod))
    assert found["slices"] == []
    (skipped,) = found["skipped"]
    assert (skipped["reason"], skipped["name"]) == ("NotServed", "try")
    assert "a pod by itself gets none here" in skipped["message"]


def changed(**metadata: Any) -> Any:
    jobset = a_jobset()
    jobset["metadata"].update(metadata)
    return jobset


def of_template(**metadata: Any) -> Any:
    jobset = a_jobset()
    template_of(jobset)["metadata"] = metadata
    return jobset


def of_job(**fields: Any) -> Any:
    jobset = a_jobset()
    jobset["spec"]["replicatedJobs"][0].update(fields)
    return jobset


@pytest.mark.parametrize(
    ("jobset", "reason", "message"),
    [
        pytest.param(
            changed(annotations={OPTED_OUT: "true"}),
            "OptedOut",
            f'JobSet v5e opted out: label or annotation {OPTED_OUT} is "true": remove it to get slices',
            id="the JobSet opted out",
        ),
        pytest.param(
            of_template(labels={OPTED_OUT: "true"}),
            "OptedOut",
            f"JobSet v5e: every replicatedJob with TPU (workers) opted out: label or annotation {OPTED_OUT}",
            id="its templates opted out",
        ),
        pytest.param(
            of_job(replicas=0), "NoReplicas", "JobSet v5e: replicatedJob workers has 0 replicas", id="no replicas"
        ),
        pytest.param(
            {**a_jobset(), "status": {"conditions": [{"type": "Completed", "status": "True"}]}},
            "Ended",
            "JobSet v5e is completed, and needs no slices any more",
            id="it has completed",
        ),
        pytest.param(
            {**a_jobset(), "spec": {**a_jobset()["spec"], "managedBy": "kueue.x-k8s.io/multikueue"}},
            "ManagedElsewhere",
            'JobSet v5e: spec.managedBy is "kueue.x-k8s.io/multikueue"',
            id="it is managed elsewhere",
        ),
    ],
)
def test_a_jobset_without_slices_is_named_with_the_reason(
    slices: Slices, jobset: Any, reason: str, message: str
) -> None:
    found = planned(slices, *dump(jobset))
    (skipped,) = found["skipped"]
    assert (found["slices"], skipped["reason"]) == ([], reason)
    assert skipped["message"].startswith(message)
    shown = slices("plan", "-f", "-", "--cluster", RESEARCH, input=yaml.safe_dump(jobset))
    assert shown.stdout == "No slice is planned.\n"
    assert shown.stderr == f"skipped standard input: {skipped['message']}\n"


def test_a_jobset_whose_name_is_generated_is_planned(slices: Slices) -> None:
    jobset = a_jobset()
    jobset["metadata"] = {"generateName": "train-"}
    assert planned(slices, *dump(jobset))["slices"][0]["name"] == "train-xxxxx"


@pytest.mark.parametrize("kind", ["JobSet", "Deployment"])
def test_what_has_a_generated_name_and_gets_no_slice_is_told_by_such_a_name(slices: Slices, kind: str) -> None:
    other = changed(name=None, generateName="train-", annotations={OPTED_OUT: "true"}) | {"kind": kind}
    other |= {"apiVersion": "apps/v1"} if kind == "Deployment" else {}
    (skipped,) = planned(slices, *dump(other))["skipped"]
    assert skipped["message"].startswith(f"{kind} train-xxxxx ")


@pytest.mark.parametrize("field", ["name", "namespace"])
def test_a_name_that_is_not_a_string_is_invalid(slices: Slices, field: str) -> None:
    found = planned(slices, *dump(changed(**{field: date(2026, 1, 1)})), code=2)
    assert found["invalid"][0]["message"] == f"metadata.{field} is not a string"


def test_templates_that_opted_out_are_named_beside_those_that_get_slices(slices: Slices) -> None:
    jobset = a_jobset()
    (job,) = jobset["spec"]["replicatedJobs"]
    other = {**yaml.safe_load(yaml.safe_dump(job)), "name": "evaluators"}
    other["template"]["spec"]["template"]["metadata"] = {"annotations": {OPTED_OUT: "true"}}
    jobset["spec"]["replicatedJobs"].append(other)
    found = planned(slices, *dump(jobset))
    assert [each["replicated_job"] for each in found["slices"]] == ["workers"]
    assert found["skipped"][0]["message"].startswith("JobSet v5e: replicatedJob (evaluators) opted out: ")


def test_a_leader_pod_that_opted_out_is_named(slices: Slices) -> None:
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "v5e",
        "jobset.sigs.k8s.io/replicatedjob-name": "workers",
        "jobset.sigs.k8s.io/job-index": "0",
        "batch.kubernetes.io/job-completion-index": "0",
        OPTED_OUT: "true",
    }
    metadata = {"name": "leader", "labels": labels}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template_of(a_jobset())["spec"]}
    assert planned(slices, *dump(pod))["skipped"][0]["reason"] == "OptedOut"


def test_what_requests_no_tpu_is_told_in_one_line(slices: Slices) -> None:
    others: list[Json] = [
        {"apiVersion": "v1", "kind": kind, "metadata": {}} for kind in ("Service", "ConfigMap", "Service")
    ]
    result = slices("plan", "-f", "-", "--cluster", RESEARCH, input="---\n".join(dump(*others, a_jobset())))
    assert result.stderr == "skipped 3 documents that request no TPU: ConfigMap, 2 Service\n"


@pytest.mark.parametrize("accelerator", CATALOGUE.keys() - {"tpu-v3-slice"})
def test_without_a_cluster_there_is_a_default_one_for_each_accelerator(slices: Slices, accelerator: str) -> None:
    topology = str(CATALOGUE[accelerator].machines[0].single_host)
    text = EXAMPLE.replace("topology: 4x4", f"topology: {topology}").replace("tpu-v5-lite-podslice", accelerator)
    text = text.replace("google.com/tpu: 4", f"google.com/tpu: {CATALOGUE[accelerator].machines[0].chips}")
    text = text.replace("parallelism: 4", "parallelism: 1").replace("completions: 4", "completions: 1")
    result = slices("plan", "-f", "-", "-o", "json", input=text)
    found = json.loads(result.stdout)
    assert found["cluster"]["settings"] == "default"
    assert found["slices"][0]["refused"] is None


@pytest.mark.parametrize("zone", ["europe-west4-b", "us-south1-ai1b"])
def test_the_default_cluster_is_in_the_zone_that_the_pod_selects(slices: Slices, zone: str) -> None:
    jobset = a_jobset()
    template_of(jobset)["spec"]["nodeSelector"]["topology.kubernetes.io/zone"] = zone
    result = slices("plan", "-f", "-", "-o", "json", input=yaml.safe_dump(jobset))
    assert json.loads(result.stdout)["slices"][0]["node_pool"]["locations"] == [zone]


def test_the_default_cluster_allows_whatever_a_pod_can_request(slices: Slices) -> None:
    prefix = "tpu-provisioner.cloud.google.com/"
    jobset = of_template(
        labels={"team": "vision"},
        annotations={
            f"{prefix}copy-labels": "team",
            f"{prefix}node-service-account": "nodes@example-project.iam.gserviceaccount.com",
            f"{prefix}additional-node-networks": "vpc-2:subnet-2",
        },
    )
    result = slices("plan", "-f", "-", "-o", "json", input=yaml.safe_dump(jobset))
    assert json.loads(result.stdout)["slices"][0]["refused"] is None


def test_the_cluster_is_told(slices: Slices) -> None:
    assert planned(slices, EXAMPLE)["cluster"] == {
        "id": "research",
        "settings": "file",
        "file": str(RESEARCH),
        "message": None,
        "pinning": None,
    }
    shown = slices("plan", "-f", "-", input=EXAMPLE)
    assert shown.stderr.startswith("no --cluster: planned for a default cluster, in the zone that the pods select")


def test_prices_are_in_json_and_end_the_table(slices: Slices) -> None:
    spot = ROOT / "examples" / "v6e-spot.yaml"
    found = json.loads(slices("plan", "-f", spot, "-o", "json").stdout)
    price = found["slices"][0]["price"]
    assert (price["usd_per_hour"], price["spot_usd_per_hour"], price["on_demand_usd_per_hour"]) == (22.45, 22.45, 43.2)
    assert (price["reserved"], price["read"]) == (False, "2026-08-07")
    assert (found["price"]["usd_per_hour"], found["price"]["as_of"]) == (44.9, "2026-08-07")
    assert slices("plan", "-f", spot).stdout.splitlines()[-1].startswith("44.90 USD per hour for 2 slices (list prices")


def test_the_readme_shows_what_the_command_prints(slices: Slices) -> None:
    readme = (ROOT / "README.md").read_text()
    shown = re.search(r"    \$ slices plan -f examples/(\S+)\n((?:    .*\n)+)", readme)
    assert shown is not None
    printed = slices("plan", "-f", ROOT / "examples" / shown[1]).stdout
    assert [line.strip() for line in shown[2].splitlines()] == [line.strip() for line in printed.splitlines()]
