"""What the API server, or the webhook of its kind, refuses of a workload: mostly names that controllers make. Pure.

| kind            | made of its name                       | has to be               | else                        |
|-----------------|----------------------------------------|-------------------------|-----------------------------|
| JobSet          | NAME-REPLICATEDJOB-JOB, and -POD-xxxxx | a label, a letter first | JobSet's webhook refuses it |
|                 | the Service of its subdomain           | the same                | the same                    |
|                 | its coordinator's name in that         | the value of a label    | the same                    |
|                 | nothing: what names a replicatedJob    | one that it has         | the same                    |
| Job             | NAME-POD, a hostname                   | a label                 | the API server refuses it   |
| LeaderWorkerSet | NAME, of a Service                     | a label, a letter first | its webhook refuses it      |
|                 | NAME, NAME-GROUP, and a hash of ten    | the value of a label    | StatefulSets create no pods |

Read in JobSet 0.10 and 0.12 (pkg/webhooks), LeaderWorkerSet 0.7 (the same), Kubernetes 1.36 (pkg/apis/batch/validation;
StatefulSets label their pods with the name of a revision: pkg/controller/history). A label has at most 63 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.wire.workloads import Json

_LONGEST = 63
_RANDOM = "xxxxx"
"""In place of what is generated."""
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LETTER_FIRST = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class _Name:
    """The name of a workload, or one such as it will have."""

    field: str
    """Of whose value it is."""
    text: str


def refused_on_creation(body: Json, kind: OwnerKind, name: str) -> Iterator[str]:
    """Yield why a workload of this name cannot be created, or no pods of it: the field, what is wrong, the remedy."""
    spec, own = body["spec"], _Name("metadata.name" if body["metadata"].get("name") else "metadata.generateName", name)
    match kind:
        case OwnerKind.JOBSET:
            for job in spec["replicatedJobs"]:
                yield from _of_replicated_job(job, own)
            yield from _of_network(spec, name)
            yield from _of_references(spec)
        case OwnerKind.JOB:
            yield from _lacks_completions(spec, "spec.completions")
            yield from _of_job(spec, own)
        case OwnerKind.LEADER_WORKER_SET:
            yield from _of_groups(spec, own)
        case OwnerKind.TPU_NODE_GROUP | OwnerKind.POD | OwnerKind.SPARE:
            return


def check_creation(body: Json, kind: OwnerKind, name: str) -> None:
    """Raise ValueError for what would be refused when it is created; what exists was accepted."""
    refused = () if "uid" in body["metadata"] else refused_on_creation(body, kind, name)
    if reasons := list(dict.fromkeys(refused)):
        raise ValueError("; ".join(reasons))


def is_indexed(job_spec: Json, otherwise: str | None) -> bool:
    """Return whether the pods of a Job have an index; `otherwise`: its mode if it says none."""
    return (job_spec.get("completionMode") or otherwise) == "Indexed"


def count_of(spec: Json, field: str, otherwise: int) -> int:
    """Return a number of a spec, `otherwise` if there is none; the reader of the kind tells one that is no number."""
    number = spec.get(field)
    return number if isinstance(number, int) else otherwise


def _of_replicated_job(job: Json, own: _Name) -> Iterator[str]:
    spec = job["template"]["spec"]
    yield from _lacks_completions(spec, f"replicatedJob {job['name']}: completions", "Indexed")
    refuses, whose = f"{own.field}: JobSet's webhook refuses it", f"of replicatedJob {job['name']} would be named"
    last = f"{own.text}-{job['name']}-{count_of(job, 'replicas', 1) - 1}"
    pod = f"{last}-{count_of(spec, 'completions', 1) - 1}-{_RANDOM}"
    remedy = "the name of the JobSet or of the replicatedJob"
    if not _LETTER_FIRST.fullmatch(last):
        yield f'{refuses}: a Job {whose} "{last}": {_characters("a letter first")}'
    elif is_indexed(spec, "Indexed") and spec.get("completions") is not None:
        yield from _too_long(f"{refuses}: a pod {whose}", pod, remedy)
    else:
        yield from _too_long(f"{refuses}: a Job {whose}", last, remedy)


def _of_references(spec: Json) -> Iterator[str]:
    """Yield which fields of a JobSet name a replicatedJob that it lacks, and which replicatedJobs have one name."""
    names = [str(job["name"]) for job in spec["replicatedJobs"]]
    any_of_them = " or ".join(dict.fromkeys(names))
    refuses = "JobSet's webhook refuses it: there is no replicatedJob"
    for field, named in _named(spec):
        if named not in names:
            yield f"{field}: {refuses} {named}: name {any_of_them}"
    for index, job in enumerate(spec["replicatedJobs"]):
        for each in job.get("dependsOn") or ():
            if each["name"] not in names[:index]:
                remedy = f"name {' or '.join(dict.fromkeys(names[:index]))}" if index else "remove it"
                yield f"spec.replicatedJobs[{index}].dependsOn: {refuses} {each['name']} before it: {remedy}"
    for twice in {name for name in names if names.count(name) > 1}:
        yield f"spec.replicatedJobs: the API server refuses two of the name {twice}: rename one"


def _named(spec: Json) -> Iterator[tuple[str, str]]:
    """Yield the fields of a JobSet that name replicatedJobs, with the names."""
    success, failure = spec.get("successPolicy") or {}, spec.get("failurePolicy") or {}
    yield from (("spec.successPolicy", str(each)) for each in success.get("targetReplicatedJobs") or ())
    for index, rule in enumerate(failure.get("rules") or ()):
        targets = rule.get("targetReplicatedJobs") or ()
        yield from ((f"spec.failurePolicy.rules[{index}]", str(each)) for each in targets)
    if coordinator := spec.get("coordinator"):
        yield "spec.coordinator", str(coordinator.get("replicatedJob"))


def _of_network(spec: Json, name: str) -> Iterator[str]:
    subdomain = str((spec.get("network") or {}).get("subdomain") or name)
    if subdomain != name:
        refuses = "spec.network.subdomain: JobSet's webhook refuses it: a Service would be named"
        if not _LETTER_FIRST.fullmatch(subdomain):
            yield f'{refuses} "{subdomain}": {_characters("a letter first")}'
        yield from _too_long(refuses, subdomain, "it")
    if coordinator := spec.get("coordinator"):
        place = f"{count_of(coordinator, 'jobIndex', 0)}-{count_of(coordinator, 'podIndex', 0)}"
        label = f"{name}-{coordinator.get('replicatedJob')}-{place}.{subdomain}"
        refuses = "spec.coordinator: JobSet's webhook refuses it: a label of each pod would be"
        yield from _too_long(refuses, label, "the name of the JobSet or its spec.network.subdomain")


def _of_job(spec: Json, own: _Name) -> Iterator[str]:
    hostname = f"{own.text}-{count_of(spec, 'completions', 1) - 1}"
    refuses = f"{own.field}: the API server refuses it: the hostname of a pod would be named"
    if not is_indexed(spec, None):
        return
    if not _LABEL.fullmatch(hostname):
        yield f'{refuses} "{hostname}": {_characters("no - at the beginning")}'
    yield from _too_long(refuses, hostname, "the name of the Job")


def _of_groups(spec: Json, own: _Name) -> Iterator[str]:
    if not _LETTER_FIRST.fullmatch(own.text):
        refuses = f"{own.field}: LeaderWorkerSet's webhook refuses it: a Service would be named"
        yield f'{refuses} "{own.text}": {_characters("a letter first")}'
        return
    several = count_of(spec["leaderWorkerTemplate"], "size", 1) > 1
    whose, group = ("workers", f"-{count_of(spec, 'replicas', 1) - 1}") if several else ("leaders", "")
    label = f"{own.text}{group}-{_RANDOM * 2}"
    no_pods = f"{own.field}: no pods can be created: a label of the {whose} would be"
    yield from _too_long(no_pods, label, "the name of the LeaderWorkerSet")


def _lacks_completions(spec: Json, field: str, mode: str | None = None) -> Iterator[str]:
    """Yield that an Indexed Job says only how many pods run at a time; a Job that says neither has one pod."""
    parallelism: Any = spec.get("parallelism")
    if is_indexed(spec, mode) and spec.get("completions") is None and parallelism is not None:
        yield (
            f"{field} is missing, and without it no Indexed Job can be created: set it to {parallelism}, as parallelism"
        )


def _too_long(what: str, made: str, shorten: str) -> Iterator[str]:
    if (beyond := len(made) - _LONGEST) > 0:
        yield (
            f'{what} "{made}", of {len(made)} characters, and at most {_LONGEST} are allowed: shorten {shorten} by '
            f"{beyond}"
        )


def _characters(beginning: str) -> str:
    return f"use a-z, 0-9 and - alone, with {beginning} and no - at the end"
