"""The Jobs on which the admission policy is tried: with its expressions alone, and on a real API server."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from tests.infra.admission import Json, Policy
from tests.infra.sources import ROOT
from tpu_slices.domain.model.facts import EXCLUSIVE
from tpu_slices.domain.planning.host_labels import CAPACITY_KEYS, NODE_POOL

MANIFEST = ROOT / "infra" / "kubernetes" / "admission.yaml"
DEFINED, BINDING = yaml.safe_load_all(MANIFEST.read_text())
POLICY = Policy(DEFINED["spec"])
OFF: Mapping[str, str] = MappingProxyType({})
STRIP = MappingProxyType({"stripSpotAndReservation": "true"})
HINT = MappingProxyType({"locationHint": '"cell-a"'})
ALONE = {"namespace": "default", "name": "alone"}
OPTED_OUT = {"tpu-provisioner.cloud.google.com/disable-autoprovisioning": "true"}
EXAMPLES = sorted((ROOT / "examples").glob("**/*.yaml"))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A Job, and the settings under which it is created.

    `refused` is what the API server objects to in it, whatever the policy does.
    """

    name: str
    job: Json = field(repr=False)
    settings: Mapping[str, str] = field(default_factory=lambda: OFF)
    refused: str | None = None

    def placed(self) -> Placement:
        """Return where the policy's expressions let its pods run."""
        return placement_of(POLICY.admitted(self.job, **self.settings))


def jobs_of(example: Path) -> list[Json]:
    """Return the TPU Jobs that the JobSet controller creates, as far as the policy reads them."""
    return [
        _child(document, job, index)
        for document in yaml.safe_load_all(example.read_text())
        if document.get("kind") == "JobSet"
        for job in document["spec"]["replicatedJobs"]
        for index in range(job["replicas"])
        if "google.com/tpu" in str(job["template"])
    ]


def _child(jobset: Json, replicated: Json, index: int) -> Json:
    """Return a Job with the annotations that the JobSet controller gives to its pods."""
    name = f"{jobset['metadata']['name']}-{replicated['name']}-{index}"
    job = a_job(name, spec=copy.deepcopy(replicated["template"]["spec"]))
    owners = (replicated["template"], jobset)
    marks = [owner.get("metadata", {}).get("annotations", {}).get(EXCLUSIVE) for owner in owners]
    return together(job, marks[0] or marks[1])


def a_job(name: str = "llama-workers-0", **parts: Any) -> Json:
    """Return a Job of a JobSet with several pods, which nothing keeps together."""
    key = hashlib.sha256(f"default/{name}".encode()).hexdigest()[:40]
    metadata = {"namespace": "default", "name": name, "labels": {"jobset.sigs.k8s.io/job-key": key}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec_of(a_container()), **parts}


def spec_of(*containers: Json, **pod: Any) -> Json:
    template = {"spec": {"restartPolicy": "Never", "containers": list(containers), **pod}}
    return {"parallelism": 4, "completions": 4, "template": template}


def together(job: Json, topology: str | None = NODE_POOL) -> Json:
    """Return a Job whose pods JobSet keeps together by a topology."""
    if topology is None:
        return job
    job = copy.deepcopy(job)
    metadata = job["spec"]["template"].setdefault("metadata", {})
    metadata.setdefault("annotations", {})[EXCLUSIVE] = topology
    return job


def a_container(name: str = "train", **resources: Json) -> Json:
    return {"name": name, "image": "train:1", "resources": resources or {"limits": {"google.com/tpu": "4"}}}


@dataclass(frozen=True)
class Placement:
    """What the pods of a Job require of their nodes."""

    selector: dict[str, str]
    terms: list[Json]
    """Of required node affinity, without what is empty."""


def placement_of(job: Json) -> Placement:
    affinity = (job["spec"]["template"]["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms", ())
    return Placement(selector_of(job), [{key: value for key, value in term.items() if value} for term in terms])


def selector_of(job: Json) -> dict[str, str]:
    selector: dict[str, str] = job["spec"]["template"]["spec"].get("nodeSelector", {})
    return selector


def selecting(**selector: str) -> Json:
    return a_job(spec=spec_of(a_container(), nodeSelector=selector))


def key_of(job: Json) -> str:
    key: str = job["metadata"]["labels"]["jobset.sigs.k8s.io/job-key"]
    return key


JOBS = [job for example in EXAMPLES for job in jobs_of(example)]
IDLE = {"name": "idle", "image": "idle:1"}


def _other_jobs() -> Iterator[Case]:
    metadata = a_job()["metadata"]
    by_label = {"template": {**spec_of(a_container())["template"], "metadata": {"labels": OPTED_OUT}}}
    others: dict[str, dict[str, Any]] = {
        "a CPU Job of a JobSet": {"spec": spec_of(a_container(limits={"cpu": "1"}))},
        "no resources at all": {"spec": spec_of(IDLE)},
        "a Job of no JobSet": {"metadata": ALONE},
        "a Job with other labels": {"metadata": {**ALONE, "labels": {"app": "x"}}},
        "opted out by its annotation": {"metadata": {**metadata, "annotations": OPTED_OUT}},
        "opted out by its pods' label": {"spec": by_label},
    }
    for name, parts in others.items():
        yield Case(name=name, job=a_job(**parts), settings=STRIP)


def _by_themselves() -> Iterator[Case]:
    indexed = {**spec_of(a_container()), "completionMode": "Indexed"}
    yield Case(name="an Indexed Job of no JobSet", job=a_job(metadata=ALONE, spec=indexed))
    yield Case(
        name="one whose name is not known yet",
        job=a_job(metadata={"namespace": "default", "generateName": "alone-"}, spec=indexed),
    )
    opted_out = {**ALONE, "annotations": OPTED_OUT}
    yield Case(name="one whose pods run one at a time", job=a_job(metadata=ALONE, spec={**indexed, "parallelism": 1}))
    marked = together(a_job(metadata=ALONE, spec=indexed))
    yield Case(name="one with the annotation that only JobSet heeds", job=marked)
    yield Case(name="an Indexed Job that opted out", job=a_job(metadata=opted_out, spec=indexed))
    idle = {**indexed, **spec_of(IDLE)}
    yield Case(name="an Indexed Job without chips", job=a_job(metadata=ALONE, spec=idle))


def _chips() -> Iterator[Case]:
    chips = {"google.com/tpu": "4"}
    for section, refused in {"limits": None, "requests": "Limit must be set for non overcommitable resources"}.items():
        asking = a_container("asking", **{section: chips})
        for where, spec in {
            "a container": spec_of(IDLE, asking),
            "an init container": spec_of(IDLE, initContainers=[asking]),
        }.items():
            yield Case(name=f"chips in the {section} of {where}", job=a_job(spec=spec), refused=refused)


def _selecting() -> Iterator[Case]:
    capacity = dict.fromkeys(CAPACITY_KEYS, "true")
    yield Case(name="no selectors", job=a_job())
    yield Case(name="a job-key of the tenant's own", job=selecting(**{"job-key": "another"}))
    yield Case(name="spot and reservations kept", job=selecting(team="vision", **capacity))
    yield Case(name="spot and reservations stripped", job=selecting(team="vision", **capacity), settings=STRIP)
    yield Case(name="nothing to strip", job=selecting(team="vision"), settings=STRIP)
    yield Case(name="no selectors to strip from", job=a_job(), settings=STRIP)
    yield Case(name="a location hint", job=a_job(), settings=HINT)
    yield Case(name="another location hint of the tenant's own", job=selecting(**{HINT_KEY: "cell-b"}), settings=HINT)
    yield Case(name="stripped, with a hint", job=selecting(**capacity), settings=MappingProxyType({**STRIP, **HINT}))


def requiring(*terms: Json) -> Json:
    """Return a Job whose pods JobSet keeps together, with required node affinity of its own."""
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}
    return together(a_job(spec=spec_of(a_container(), affinity=affinity)))


def _together() -> Iterator[Case]:
    yield Case(name="kept together", job=together(a_job()))
    yield Case(name="kept together by zone", job=together(a_job(), "topology.kubernetes.io/zone"))
    yield Case(name="kept together, selecting", job=together(selecting(team="vision")))
    yield Case(name="kept together, requiring one thing or another", job=requiring(VISION, A_NODE))
    yield Case(name="kept together, requiring two things at once", job=requiring({**VISION, **A_NODE}))
    preferring = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": VISION}]}
    for name, affinity in {
        "preferring nodes": {"nodeAffinity": preferring},
        "apart from others": {"podAntiAffinity": {}},
    }.items():
        job = together(a_job(spec=spec_of(a_container(), affinity=affinity)))
        yield Case(name=f"kept together, {name}", job=job)
    capacity = selecting(**dict.fromkeys(CAPACITY_KEYS, "true"))
    yield Case(name="kept together, stripped", job=together(capacity), settings=STRIP)
    yield Case(name="one pod at a time", job=a_job(spec={**spec_of(a_container()), "parallelism": 1, "completions": 1}))


VISION = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["vision"]}]}
A_NODE = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["host-0"]}]}
HINT_KEY = "cloud.google.com/gke-location-hint"
OF_EXAMPLES = [Case(name=job["metadata"]["name"], job=job) for job in JOBS]
OTHERS, CHIPS, SELECTING, TOGETHER = list(_other_jobs()), list(_chips()), list(_selecting()), list(_together())
BY_THEMSELVES = list(_by_themselves())
CASES = [*OF_EXAMPLES, *OTHERS, *BY_THEMSELVES, *CHIPS, *SELECTING, *TOGETHER]
