"""What `slices plan` answers to objects that are written as a file."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.cli.conftest import RESEARCH, ROOT, Slices

Json = dict[str, Any]


def a_jobset(name: str = "v5e") -> Any:
    """Return the JobSet of an example: one Job of four hosts, which nothing is wrong with."""
    example = yaml.safe_load((ROOT / "examples" / "v5e.yaml").read_text())
    example["metadata"]["name"] = name
    return example


def job_of(jobset: Any) -> Any:
    """Return the spec of its Job."""
    return jobset["spec"]["replicatedJobs"][0]["template"]["spec"]


def pod_of(jobset: Any) -> Any:
    """Return the spec of its pods."""
    return job_of(jobset)["template"]["spec"]


def a_job(hosts: int = 2) -> tuple[Any, Any]:
    """Return the headless Service and the Job of an example."""
    service, job = yaml.safe_load_all((ROOT / "examples" / "indexed-job.yaml").read_text())
    job["spec"] |= {"parallelism": hosts, "completions": hosts}
    return service, job


def groups() -> Any:
    """Return the LeaderWorkerSet of an example."""
    documents = yaml.safe_load_all((ROOT / "examples" / "leader-worker-set.yaml").read_text())
    return next(each for each in documents if each["kind"] == "LeaderWorkerSet")


def answer(slices: Slices, *documents: Any, code: int = 0) -> Json:
    """Return the plan for these documents of one file, in JSON."""
    text = yaml.safe_dump_all(documents)
    result = slices("plan", "-f", "-", "--cluster", RESEARCH, "-o", "json", input=text)
    assert result.exit_code == code, result.output
    found: Json = json.loads(result.stdout)
    return found


def invalid(slices: Slices, *documents: Any) -> str:
    """Return why one of these documents would be refused, and nothing of it is planned."""
    (only,) = answer(slices, *documents, code=2)["invalid"]
    return str(only["message"])
