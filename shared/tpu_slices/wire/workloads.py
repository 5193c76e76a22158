"""Reads what JobSets and their leader pods request, from Kubernetes' JSON, for the relay and for `slices plan`.

Keys: sigs.k8s.io/jobset api/jobset/v1alpha2, k8s.io/api/batch/v1; TPU Provisioner's: ai-on-gke/tpu-provisioner@6789e2a.
Whatever a tenant writes, a SlicesWanted with these values is smaller than `messages.MOST_BYTES`:

| what                         | limit                                           | beyond that                         |
|------------------------------|-------------------------------------------------|-------------------------------------|
| labels of a template, a pod  | LABELS, the first by key                        | omitted: a node pool allows fewer   |
| one template                 | TEMPLATE_BYTES, or its share of TEMPLATES_BYTES | without labels, else refused        |
| a pod's node selector        | SELECTOR_CHARACTERS, the first by key           | omitted: the pod is refused anyway  |
| replicatedJobs with TPU      | TEMPLATES                                       | ValueError                          |
| slices                       | SLICES_PER_WORKLOAD                             | ValueError                          |
| the text of a ValueError     | ERROR_CHARACTERS                                | cut off                             |
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tpu_slices.domain.model.facts import (
    EXCLUSIVE,
    REQUESTED_ANNOTATIONS,
    SLICING_MARKS,
    Reach,
    Requirement,
    TemplateRequest,
    Toleration,
    WaitingLeader,
)
from tpu_slices.domain.model.slices import SLICES_PER_WORKLOAD, Pairs
from tpu_slices.domain.planning.host_labels import ACCELERATOR, NODE_POOL, TOPOLOGY
from tpu_slices.domain.planning.pool_labels import OF_ONE_SLICE
from tpu_slices.domain.planning.reach import reach_of
from tpu_slices.domain.planning.sharing import slices_of
from tpu_slices.wire.bounds import ERROR_CHARACTERS, TEMPLATE_BYTES, TEMPLATES
from tpu_slices.wire.messages import bytes_of
from tpu_slices.wire.pod_rules import pod_rules_of
from tpu_slices.wire.quantities import cpu_milli, ephemeral_bytes, extended, memory_bytes, requested

Json = Mapping[str, Any]

CHIPS = "google.com/tpu"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
JOBSET_UID = "jobset.sigs.k8s.io/jobset-uid"
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
GLOBAL_INDEX = "jobset.sigs.k8s.io/job-global-index"
"""That of a Job among all Jobs of its JobSet, in the order of the spec."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
OPTED_OUT = "tpu-provisioner.cloud.google.com/disable-autoprovisioning"
BY_NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"

LABELS = 100
TEMPLATES_BYTES = 600_000
SELECTOR_CHARACTERS = 4_096
"""More than the labels of our hosts can have: a node pool allows 1,024 characters, and GKE adds fewer."""

_LONGEST = 63  # of a label's value, and of a Job's name

_TOO_MUCH = Requirement(
    key="pod template",
    operator="In",
    values=(f"fewer selectors, affinities, tolerations and annotations (at most {TEMPLATE_BYTES} bytes are read)",),
)
_UNOFFERED = ("nvidia.com/", "amd.com/gpu", "gpu.intel.com/", "hugepages-")
"""How the names of resources begin that no TPU host offers, whatever DaemonSets run there."""
_NO_NODE = Requirement(key="nodeSelectorTerms", operator="In", values=("an expression in every term",))
"""Replaces an empty term, which no node meets (v1 NodeSelectorTerm)."""


def asks_for_tpu(jobset: Json) -> bool:
    """Return whether a pod template requests chips, from whichever provisioner; raise ValueError like `requests_of`."""
    return bool(_with_chips(jobset))


def requests_of(jobset: Json) -> tuple[TemplateRequest, ...]:
    """Return the requests of a JobSet's replicatedJobs with chips whose templates have not opted out.

    Raise ValueError, naming the field, if a field is not as in Kubernetes' API.
    """
    ours = {name: job for name, job in _with_chips(jobset).items() if not opted_out(_pod_template(job))}
    if len(ours) > TEMPLATES:
        raise ValueError(f"spec.replicatedJobs: {len(ours)} request TPU, at most {TEMPLATES} are supported")
    most = min(TEMPLATE_BYTES, TEMPLATES_BYTES // max(1, len(ours)))
    requests = []
    for name, job in ours.items():
        with reading(f"replicatedJob {name}"):
            requests.append(_bounded(_request_of_job(jobset, job), most))
    if (slices := sum(map(slices_of, requests))) > SLICES_PER_WORKLOAD:
        raise ValueError(
            f"spec.replicatedJobs: the replicas are {slices} slices together, at most {SLICES_PER_WORKLOAD} of a "
            "JobSet are supported"
        )
    return tuple(requests)


def request_of_template(template: Json, **added: Any) -> TemplateRequest:
    """Return the request of a pod or template of anything but a JobSet; raise ValueError like `requests_of`.

    `added`: fields of the request that do not follow from the template.
    """
    return _bounded(replace(_request(template, ""), **added), TEMPLATE_BYTES)


def request_of_pod(pod: Json) -> TemplateRequest:
    """Return the request of a JobSet's leader pod without its JobSet; raise ValueError like `requests_of`."""
    with reading("Pod"):
        labels = _strings(pod["metadata"], "labels")
        request = replace(_request(pod, labels[REPLICATED_JOB]), first_job=first_job_of(labels))
        return _bounded(replace(request, **_exclusive(annotations_of(pod))), TEMPLATE_BYTES)


def first_job_of(labels: Mapping[str, str]) -> int | None:
    """Return the index of the first Job of a pod's replicatedJob among all Jobs of its JobSet; None: unknown."""
    every, own = labels.get(GLOBAL_INDEX, ""), labels.get(JOB_INDEX, "")
    if not is_count(every) or not is_count(own) or int(own) > int(every):
        return None
    return int(every) - int(own)


def leader_of(pod: Json) -> WaitingLeader:
    """Return a leader pod's replicatedJob, index, node selector and labels; raise ValueError like `requests_of`."""
    with reading("Pod"):
        labels = _strings(pod["metadata"], "labels")
        if not is_count(index := labels[JOB_INDEX]):
            raise ValueError(f'label {JOB_INDEX}: "{index[:_LONGEST]}" is not a valid index')
        return leader_with(pod, labels[REPLICATED_JOB], int(index), EXCLUSIVE)


def leader_with(pod: Json, replicated_job: str, job_index: int, exclusive: str = "") -> WaitingLeader:
    """Return the leader pod of this place in its workload; raise ValueError like `requests_of`.

    `exclusive`: the annotation by which the controller of its kind places it exclusively; empty: the kind has none.
    """
    return WaitingLeader(
        replicated_job=replicated_job,
        job_index=job_index,
        node_selector=_selector(_strings(pod["spec"], "nodeSelector")),
        labels=tuple(sorted(_strings(pod["metadata"], "labels").items())),
        reach=_reach(pod, exclusive),
    )


def _reach(pod: Json, exclusive: str) -> Reach:
    placed = annotations_of(pod).get(exclusive) == NODE_POOL
    selects = not OF_ONE_SLICE.isdisjoint(_strings(pod["spec"], "nodeSelector"))
    met = (term for term in _affinity(pod["spec"]) if term != (_NO_NODE,))
    return reach_of(met, kept_together=placed or selects)


def beyond_template(leader: WaitingLeader, request: TemplateRequest) -> WaitingLeader:
    """Return the leader with only those labels that its template does not have."""
    known = frozenset(request.labels)
    kept = replace(leader, labels=tuple(pair for pair in leader.labels if pair not in known)[:LABELS])
    return kept if bytes_of(kept) <= TEMPLATE_BYTES else replace(kept, labels=())


def chips_of(pod: Json) -> int:
    """Return the chips that a pod, or each pod of a template, requests; raise ValueError like `requests_of`."""
    return extended(pod["spec"], CHIPS)


def volumes_of(pod: Json) -> tuple[str, ...]:
    """Return the names of the PersistentVolumeClaims that a pod mounts; ephemeral ones are not bound before."""
    claims = (volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes") or ())
    return tuple(sorted({claim["claimName"] for claim in claims if claim}))


def shape_of_pod(pod: Json) -> tuple[str | None, str | None]:
    """Return the accelerator and the topology of a pod or template: by node selector, else by required node affinity.

    Raise ValueError like `requests_of`.
    """
    with reading("Pod"):
        return _shape(_strings(pod["spec"], "nodeSelector"), _affinity(pod["spec"]))


def opted_out(obj: Json) -> bool:
    """Return whether a JobSet, template or pod has the label or annotation that disables provisioning for it."""
    metadata = obj.get("metadata") or {}
    return any((metadata.get(section) or {}).get(OPTED_OUT) == "true" for section in ("labels", "annotations"))


def is_count(text: str) -> bool:
    """Return whether a text is a whole number of at most nine digits."""
    return text.isascii() and text.isdigit() and len(text) < 10


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise errors within the block as ValueError with the name of what is read; they may quote what tenants wrote."""
    try:
        yield
    except KeyError as missing:
        raise ValueError(f"{what}: {missing.args[0]} is missing") from missing
    except ValueError as wrong:
        raise ValueError(f"{what}: {wrong}"[:ERROR_CHARACTERS]) from wrong
    except (TypeError, AttributeError) as wrong:
        raise ValueError(f"{what}: does not match the Kubernetes API: {wrong}"[:ERROR_CHARACTERS]) from wrong


def _with_chips(jobset: Json) -> Mapping[str, Json]:
    """Return the replicatedJobs whose pods request chips, by name, without names too long for a Job."""
    found = {}
    with reading("spec.replicatedJobs"):
        for job in jobset["spec"].get("replicatedJobs") or ():
            with reading(f"replicatedJob {str(job['name'])[:_LONGEST]}"):
                if chips_of(_pod_template(job)) and len(job["name"]) <= _LONGEST:
                    found[job["name"]] = job
    return found


def _pod_template(replicated_job: Json) -> Json:
    template: Json = replicated_job["template"]["spec"]["template"]
    return template


def _replicas(replicated_job: Json) -> int:
    replicas = replicated_job.get("replicas", 1)
    if not isinstance(replicas, int) or replicas < 0:
        raise ValueError(f'replicas: "{replicas}" is not a valid number of Jobs')
    return replicas


def _request_of_job(jobset: Json, replicated_job: Json) -> TemplateRequest:
    job = replicated_job["template"]
    annotations = annotations_of(job)
    from_jobset = annotations_of(jobset)
    applied = from_jobset if EXCLUSIVE in from_jobset else {}  # the other annotation only together with this one
    return replace(
        _request(_pod_template(replicated_job), replicated_job["name"]),
        replicas=_replicas(replicated_job),
        first_job=_jobs_before(jobset, replicated_job),
        **fields_of_job(job),
        **_exclusive({**applied, **annotations}),
    )


def _jobs_before(jobset: Json, replicated_job: Json) -> int | None:
    """Return how many Jobs a JobSet has before those of a replicatedJob, as its controller counts them.

    None: more than `is_count` takes for a number.
    """
    before = itertools.takewhile(lambda job: job["name"] != replicated_job["name"], jobset["spec"]["replicatedJobs"])
    jobs = sum(map(_replicas, before))
    return jobs if is_count(str(jobs)) else None


def fields_of_job(job: Json) -> dict[str, Any]:
    """Return what of a Job, or of its template, is no part of its pods' template; raise ValueError for a field."""
    parallelism = pods_of(job["spec"], "parallelism", 1)
    marks = {**_slicing(job), **_slicing(job["spec"]["template"])}
    return {
        "parallelism": parallelism,
        "completions": pods_of(job["spec"], "completions", parallelism),
        "slicing": tuple(sorted(marks.items())),
    }


def pods_of(spec: Json, field: str, otherwise: int) -> int:
    """Return a number of pods; raise ValueError with the field if it is none."""
    number = spec.get(field)
    if number is None:
        return otherwise
    if not isinstance(number, int) or not 0 <= number < 1 << 31:
        raise ValueError(f'{field}: "{str(number)[:_LONGEST]}" is not a valid number of pods')
    return number


def _request(pod: Json, replicated_job: str) -> TemplateRequest:
    """Return the request of a pod or pod template, for one Job; without what annotations of its JobSet add."""
    spec, metadata = pod["spec"], pod.get("metadata") or {}
    selector, annotations = _strings(spec, "nodeSelector"), _strings(metadata, "annotations")
    labels, affinity = _strings(metadata, "labels"), _affinity(spec)
    accelerator, topology = _shape(selector, affinity)
    return TemplateRequest(
        replicated_job=replicated_job,
        replicas=1,
        accelerator=accelerator,
        topology=topology,
        chips_per_pod=extended(spec, CHIPS),
        node_selector=tuple(sorted(selector.items())),
        affinity=affinity,
        tolerations=tuple(_toleration(toleration) for toleration in spec.get("tolerations") or ()),
        cpu_milli=cpu_milli(spec),
        memory_bytes=memory_bytes(spec),
        ephemeral_bytes=ephemeral_bytes(spec),
        unoffered=requested(spec, _UNOFFERED),
        labels=tuple(sorted(labels.items())[:LABELS]),
        requested_annotations=tuple((key, annotations[key]) for key in REQUESTED_ANNOTATIONS if key in annotations),
        slicing=tuple(sorted(_slicing(pod).items())),
        pod_rules=pod_rules_of(spec, labels),
    )


def _shape(selector: Mapping[str, str], affinity: tuple[tuple[Requirement, ...], ...]) -> tuple[str | None, str | None]:
    accelerator, topology = (
        selector[key] if key in selector else _required(affinity, key) for key in (ACCELERATOR, TOPOLOGY)
    )
    return accelerator, topology


def _required(affinity: tuple[tuple[Requirement, ...], ...], key: str) -> str | None:
    """Return the one value of a label that every term of a node affinity requires; None: there is no such value."""
    required = [
        {each.values[0] for each in term if (each.key, each.operator, len(each.values)) == (key, "In", 1)}
        for term in affinity
    ]
    values = set[str]().union(*required)
    return values.pop() if all(required) and len(values) == 1 else None


def _slicing(obj: Json) -> dict[str, str]:
    """Return the marks of slices that GKE forms, among the labels and annotations of a Job's or a pod's template."""
    metadata = obj.get("metadata") or {}
    marks = {**_strings(metadata, "labels"), **_strings(metadata, "annotations")}
    return {key: marks[key] for key in SLICING_MARKS if key in marks}


def _bounded(request: TemplateRequest, most: int) -> TemplateRequest:
    """Return the request within this size: whole, without labels, or reduced to one that is refused."""
    for kept in (request, replace(request, labels=())):
        if bytes_of(kept) <= most:
            return kept
    return TemplateRequest(
        replicated_job=request.replicated_job,
        replicas=request.replicas,
        accelerator=(request.accelerator or "")[: _LONGEST + 1],  # longer than any label's value: still refused
        topology=(request.topology or "")[: _LONGEST + 1],
        chips_per_pod=request.chips_per_pod,
        affinity=((_TOO_MUCH,),),
    )


def _selector(selector: Mapping[str, str]) -> Pairs:
    """Return the first pairs, up to the limit: a pod that selects more is refused, whatever the rest selects."""
    pairs = sorted(selector.items())
    sums = itertools.accumulate(len(key) + len(value) for key, value in pairs)
    return tuple(pair for pair, so_far in zip(pairs, sums, strict=True) if so_far <= SELECTOR_CHARACTERS)


def _affinity(pod_spec: Json) -> tuple[tuple[Requirement, ...], ...]:
    node_affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return ()
    terms = tuple(_term(term) for term in required.get("nodeSelectorTerms") or ())
    return tuple(term or (_NO_NODE,) for term in terms) or ((_NO_NODE,),)


def _term(term: Json) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(
            key=_text(each["key"]),
            operator=_text(each["operator"]),
            values=tuple(_text(value) for value in each.get("values") or ()),
        )
        for each in (*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ()))
    )


def _toleration(toleration: Json) -> Toleration:
    return Toleration(
        key=_text(toleration.get("key") or ""),
        operator=_text(toleration.get("operator") or "Equal"),
        value=_text(toleration.get("value") or ""),
        effect=_text(toleration.get("effect") or ""),
    )


def _exclusive(annotations: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields about JobSet's exclusive placement, by the annotations of a Job's template.

    A Job gets the JobSet's node selector annotation only together with its topology annotation
    (pkg/controllers/jobset_controller.go, labelAndAnnotateObject).
    """
    by_node_selector = EXCLUSIVE in annotations and BY_NODE_SELECTOR in annotations
    return {
        "exclusive_nodes": by_node_selector,
        "exclusive_topology": "" if by_node_selector else annotations.get(EXCLUSIVE, ""),
    }


def annotations_of(obj: Json) -> Mapping[str, str]:
    """Return the annotations that a tenant wrote; raise TypeError for one that is no text."""
    return _strings(obj.get("metadata") or {}, "annotations")


def _strings(section: Json, key: str) -> Mapping[str, str]:
    return {_text(name): _text(value) for name, value in (section.get(key) or {}).items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} must be a string: put it in quotes")
    return value
