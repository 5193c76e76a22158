"""JobSets, Jobs and LeaderWorkerSets, and which of their pod templates get the label of a gang."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.infra.admission.pods import IDLE, SELECTOR, Json, a_container
from tests.infra.admission.settings import OFF, OPTED_OUT
from tpu_slices.domain.model.facts import INJECT_SLICE_SELECTOR, PROVISIONING_REQUESTS, SLICE_TOPOLOGY
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.planning.host_labels import GKE_PROVISIONERS, GROUP_KEYS

MULTISLICE: Mapping[str, str] = {"gangs": '"multislice"'}
HELD = {"labels": {GANG: "true"}}
Labels = Mapping[str, str]
ASKING = ("all", "true", "replicatedjob")


def a_template(chips: str | int = "4", metadata: Mapping[str, Any] | None = None, **spec: Any) -> Json:
    """Return a template of pods with chips, or idle ones: `0`."""
    container = a_container(chips=chips) if chips != "0" else IDLE
    pod = {"restartPolicy": "Never", "containers": [container], "nodeSelector": dict(SELECTOR), **spec}
    return {"spec": pod, **({} if metadata is None else {"metadata": copy.deepcopy(dict(metadata))})}


def _metadata(name: str, gang: str | None, labels: Labels | None = None, annotations: Labels | None = None) -> Json:
    said = {**(annotations or {}), **({} if gang is None else {GANG: gang})}
    more = {"labels": dict(labels or {}), "annotations": said}
    return {"name": name, "namespace": "default", **{key: value for key, value in more.items() if value}}


def a_jobset(
    *templates: Json,
    gang: str | None = None,
    replicas: int = 1,
    suspend: bool = False,
    labels: Labels | None = None,
    annotations: Labels | None = None,
) -> Json:
    """Return a JobSet with so many Jobs of each template."""
    jobs = [
        {
            "name": f"job-{number}",
            "groupName": "default",
            "replicas": replicas,
            "template": {
                "spec": {
                    "parallelism": 1,
                    "completions": 1,
                    "completionMode": "Indexed",
                    "template": copy.deepcopy(each),
                }
            },
        }
        for number, each in enumerate(templates or (a_template(),))
    ]
    spec = {"replicatedJobs": jobs, **({"suspend": True} if suspend else {})}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _metadata("llama", gang, labels, annotations),
        "spec": spec,
    }


def a_lone_job(
    template: Json | None = None, gang: str | None = None, *, suspend: bool = False, labels: Labels | None = None
) -> Json:
    spec: Json = {"completionMode": "Indexed", "parallelism": 4, "completions": 4, "suspend": suspend}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata("alone", gang, labels),
        "spec": {**spec, "template": template or a_template()},
    }


def a_set(worker: Json, leader: Json | None = None, gang: str | None = None) -> Json:
    """Return a LeaderWorkerSet."""
    template = {"size": 4, **({} if leader is None else {"leaderTemplate": leader}), "workerTemplate": worker}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": _metadata("vllm", gang),
        "spec": {"replicas": 2, "leaderWorkerTemplate": template},
    }


def templates_of(workload: Json) -> dict[str, Json]:
    """Return the pod templates of a workload by their names."""
    spec = workload["spec"]
    if "replicatedJobs" in spec:
        return {each["name"]: each["template"]["spec"]["template"] for each in spec["replicatedJobs"]}
    if "leaderWorkerTemplate" in spec:
        return {key: each for key, each in spec["leaderWorkerTemplate"].items() if key.endswith("Template")}
    return {"": spec["template"]}


def labelled(workload: Json) -> set[str]:
    """Return the names of the templates that have the label."""
    found = {name: each.get("metadata", {}).get("labels", {}) for name, each in templates_of(workload).items()}
    return {name for name, labels in found.items() if labels.get(GANG) == "true"}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A workload as it is submitted, and the templates that have the label when it is stored."""

    name: str
    workload: Json = field(repr=False)
    gets: frozenset[str]
    old: Json | None = field(default=None, repr=False)
    """As it was before; None: it is new."""
    settings: Mapping[str, str] = field(default_factory=lambda: OFF)


def _asked(name: str, workload: Json, *gets: str, **fields: Any) -> Asked:
    return Asked(name=name, workload=workload, gets=frozenset(gets), **fields)


def new_ones() -> Iterator[Asked]:
    """Yield workloads that are new."""
    for said in ASKING:
        yield _asked(f"a JobSet with the annotation {said}", a_jobset(gang=said), "job-0")
    for said in ("none", "false", "some", ""):
        several = a_jobset(gang=said, replicas=2)
        yield _asked(f"a JobSet with the annotation '{said}'", several, settings=MULTISLICE)
    yield _asked("a JobSet with nothing", a_jobset(replicas=2))
    two = a_jobset(a_template("0"), a_template(), a_template(metadata={"annotations": {"a": "b"}}), gang="all")
    yield _asked("a JobSet with a driver", two, "job-1", "job-2")
    named = a_jobset(a_template(metadata={"labels": {"team": "vision"}}), gang="all")
    yield _asked("a JobSet whose pods have labels", named, "job-0")
    other = a_jobset(a_template(metadata={"labels": {GANG: "no"}}), gang="all")
    yield _asked("a JobSet whose pods have another label", other, "job-0")
    yield _asked("a JobSet whose pods have it", a_jobset(a_template(metadata=HELD)), "job-0")
    yield _asked(
        "a JobSet whose chips are a number", a_jobset(a_template(4), a_template(), gang="all"), "job-0", "job-1"
    )
    yield _asked("a Job", a_lone_job(gang="all"), "")
    yield _asked("a Job without the annotation", a_lone_job(), settings=MULTISLICE)
    child = a_lone_job(gang="all", labels={"jobset.sigs.k8s.io/jobset-name": "llama"})
    yield _asked("a Job of a JobSet", child)
    yield _asked("a LeaderWorkerSet", a_set(a_template(), gang="all"), "workerTemplate")
    both = a_set(a_template(), a_template(), gang="all")
    yield _asked("a LeaderWorkerSet with a leader", both, "leaderTemplate", "workerTemplate")
    idle = a_set(a_template(), a_template("0"), gang="all")
    yield _asked("a LeaderWorkerSet with an idle leader", idle, "workerTemplate")
    yield _asked("a LeaderWorkerSet without the annotation", a_set(a_template()), settings=MULTISLICE)


def by_default() -> Iterator[Asked]:
    """Yield JobSets that do not say whether they are gangs, where those of several slices are."""
    given: Any = {"settings": MULTISLICE}
    yield _asked("several Jobs", a_jobset(replicas=2), "job-0", **given)
    yield _asked("several replicatedJobs", a_jobset(a_template(), a_template()), "job-0", "job-1", **given)
    yield _asked("one Job", a_jobset(), **given)
    yield _asked("one Job with chips", a_jobset(a_template("0"), a_template()), **given)
    yield _asked("no Jobs", a_jobset(a_template(), a_template(), replicas=0), **given)
    for where in ("labels", "annotations"):
        opted_out: Any = {where: {OPTED_OUT: "true"}}
        yield _asked(f"opted out by its {where}", a_jobset(replicas=2, **opted_out), **given)
        out = a_template(metadata={where: {OPTED_OUT: "true"}})
        yield _asked(f"pods opted out by their {where}", a_jobset(out, replicas=2), **given)
        parts = a_template(metadata={where: {INJECT_SLICE_SELECTOR: "true"}})
        yield _asked(f"slices of parts, by their {where}", a_jobset(parts, replicas=2), **given)
    for key in sorted({*GKE_PROVISIONERS, *GROUP_KEYS}):
        others = a_template(nodeSelector={**SELECTOR, key: "some"})
        yield _asked(f"pods that select {key}", a_jobset(others, replicas=2), **given)
    for key in (*PROVISIONING_REQUESTS, SLICE_TOPOLOGY):
        theirs = a_template(metadata={"annotations": {key: "2x4"}})
        yield _asked(f"pods with the annotation {key}", a_jobset(theirs, replicas=2), **given)
    whole = a_template(metadata={"annotations": {SLICE_TOPOLOGY: "4x4"}})
    yield _asked("pods of a whole slice", a_jobset(whole, replicas=2), "job-0", **given)


def changed() -> Iterator[Asked]:
    """Yield workloads that exist."""
    bare, had = a_template(), a_template(metadata=HELD)
    once: Any = {"old": a_jobset(had, gang="all")}
    yield _asked("applied again", a_jobset(gang="all"), "job-0", **once)
    yield _asked("applied without the annotation", a_jobset(), "job-0", **once)
    yield _asked("applied as no gang", a_jobset(gang="none"), "job-0", **once)
    yield _asked("suspended meanwhile", a_jobset(gang="all", suspend=True), "job-0", **once)
    yield _asked("annotated later", a_jobset(gang="all"), old=a_jobset())
    partly = a_jobset(bare, bare, gang="all")
    yield _asked("of which one template had it", partly, "job-1", old=a_jobset(bare, had, gang="all"))
    queued, waiting = {"old": a_jobset(suspend=True)}, {"old": a_jobset(had, gang="all", suspend=True)}
    yield _asked("annotated while suspended", a_jobset(gang="all", suspend=True), "job-0", **queued)
    yield _asked("annotated as it is resumed", a_jobset(gang="all"), "job-0", **queued)
    yield _asked("applied again while suspended", a_jobset(gang="all", suspend=True), "job-0", **waiting)
    yield _asked("no gang any more while suspended", a_jobset(gang="none", suspend=True), **waiting)
    given: Any = {"settings": MULTISLICE}
    before = a_jobset(had, replicas=2)
    yield _asked("of several slices, applied again", a_jobset(replicas=2), "job-0", old=before, **given)
    yield _asked("of several slices, where they are no gangs any more", a_jobset(replicas=2), "job-0", old=before)
    late = {"old": a_jobset(replicas=2), **given}
    yield _asked("of several slices, from before the setting", a_jobset(replicas=2), **late)
    queued_before = {"old": a_jobset(replicas=2, suspend=True), **given}
    yield _asked("of several slices, queued before the setting", a_jobset(replicas=2), **queued_before)
    several = {"old": a_jobset(had, replicas=2, suspend=True), **given}
    yield _asked(
        "of several slices, applied again while queued", a_jobset(replicas=2, suspend=True), "job-0", **several
    )
    yield _asked("a Job that is applied again", a_lone_job(gang="all"), "", old=a_lone_job(had, gang="all"))
    yield _asked("a Job that is annotated later", a_lone_job(gang="all"), old=a_lone_job())
    suspended = a_lone_job(suspend=True)
    yield _asked("a Job that is annotated while suspended", a_lone_job(gang="all", suspend=True), old=suspended)
    held = a_lone_job(had, gang="all", suspend=True)
    yield _asked("a suspended Job that is no gang any more", a_lone_job(suspend=True), old=held)
    groups = {"old": a_set(had, gang="all")}
    yield _asked("a LeaderWorkerSet that is replaced", a_set(bare, gang="all"), "workerTemplate", **groups)
    yield _asked("a LeaderWorkerSet that is no gang any more", a_set(bare), **groups)
    yield _asked("a LeaderWorkerSet that is annotated later", a_set(bare, gang="all"), old=a_set(bare))


ASKED = [*new_ones(), *by_default(), *changed()]
