"""Which pod templates of a workload get the label of a gang, by which its pods are held. Pure.

The table is that of the second policy of infra/kubernetes/admission.yaml, which says the same in CEL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from relay.webhook.placing import add, escaped
from relay.webhook.pods import Json, Pod
from tpu_slices.domain.model.gangs import GANG, GangOf, Gangs
from tpu_slices.wire.workloads import JOBSET_NAME, opted_out

ASKING = frozenset({GangOf.ALL, "true", GangOf.REPLICATED_JOB})
"""The values of the annotation that ask for a gang."""
LABELLED = "true"
"""The value of the label."""
JOBS, GROUPS = "replicatedJobs", "leaderWorkerTemplate"
"""What the spec of a JobSet has, and that of a LeaderWorkerSet."""


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template: what it is called in its workload, its path, and how many Jobs are made of it."""

    name: str
    path: str
    jobs: int
    metadata: Json | None
    pod: Pod

    @property
    def is_labelled(self) -> bool:
        return self.pod.labels.get(GANG) == LABELLED

    @property
    def gets_slices(self) -> bool:
        """Whether slices are made for its pods, as far as it says itself."""
        return self.pod.is_judged and not self.pod.is_static

    def labelled(self) -> Iterator[Json]:
        """Yield the operations (RFC 6902) that label it."""
        if self.metadata is None:
            yield add(f"{self.path}/metadata", {})
        if not self.pod.labels:
            yield add(f"{self.path}/metadata/labels", {})
        yield add(f"{self.path}/metadata/labels/{escaped(GANG)}", LABELLED)


def _templates(spec: Json) -> Iterator[Template]:
    """Yield the pod templates with chips of the spec of a JobSet, a LeaderWorkerSet or a Job."""
    for name, path, jobs, template in _written(spec):
        metadata = template.get("metadata")
        pod = Pod.read({"metadata": {"namespace": "", **(metadata or {})}, "spec": template["spec"]})
        if pod.asks_for_chips:
            yield Template(name, path, jobs, metadata, pod)


def _written(spec: Json) -> Iterator[tuple[str, str, int, Json]]:
    """Yield the name of each pod template, its path, how many Jobs are made of it, and itself."""
    if JOBS in spec:
        for number, job in enumerate(spec[JOBS]):
            path = f"/spec/{JOBS}/{number}/template/spec/template"
            yield job["name"], path, job.get("replicas", 1), job["template"]["spec"]["template"]
    elif GROUPS in spec:
        for key in ("leaderTemplate", "workerTemplate"):
            if template := spec[GROUPS].get(key):
                yield key, f"/spec/{GROUPS}/{key}", 1, template
    else:
        yield "", "/spec/template", 1, spec["template"]


def patch_of(obj: Json, old: Json | None, gangs: Gangs) -> list[Json]:
    """Return the operations that label the templates of a workload; `old`: as it was, None: it is new.

    `gangs`: which workloads are gangs that do not say so.
    """
    if JOBSET_NAME in (obj["metadata"].get("labels") or {}):
        return []
    templates = tuple(_templates(obj["spec"]))
    served = [each for each in templates if each.gets_slices]
    names = frozenset(each.name for each in served) if _is_gang(obj, served, gangs) else frozenset[str]()
    get_it = names if old is None else _changed(obj, old["spec"], names)
    labelled = (each for each in templates if each.name in get_it and not each.is_labelled)
    return [operation for each in labelled for operation in each.labelled()]


def _is_gang(obj: Json, served: Collection[Template], gangs: Gangs) -> bool:
    if opted_out(obj):
        return False
    if _asks(obj):
        return _annotations(obj)[GANG] in ASKING
    return gangs is Gangs.MULTISLICE and JOBS in obj["spec"] and sum(each.jobs for each in served) > 1


def _changed(obj: Json, old: Json, names: frozenset[str]) -> frozenset[str]:
    """Return the templates of a workload that exists that get the label; `old`: as its spec was.

    `names`: those of which slices are made, if it is a gang.

    | workload                                | templates                                                         |
    |-----------------------------------------|-------------------------------------------------------------------|
    | a JobSet or Job that was not suspended  | those that had it: they are immutable                             |
    | a JobSet that was, with the annotation  | of a gang, all                                                    |
    | any other                               | of a gang, those that had it                                      |
    """
    had = frozenset(each.name for each in _templates(old) if each.is_labelled)
    is_suspended = bool(old.get("suspend"))
    if GROUPS not in old and not is_suspended:
        return had
    return names if JOBS in old and is_suspended and _asks(obj) else names & had


def _asks(obj: Json) -> bool:
    return GANG in _annotations(obj)


def _annotations(obj: Json) -> Mapping[str, str]:
    return obj["metadata"].get("annotations") or {}
