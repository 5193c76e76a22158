"""Which Jobs share a slice. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.facts import IDLE_HOSTS, TemplateRequest


def share_slice(request: TemplateRequest) -> bool:
    """Return whether the Jobs of a replicatedJob are the hosts of one slice, which the first of them leads.

    | Jobs                                                          | slices       |
    |---------------------------------------------------------------|--------------|
    | of one pod each, several, with all chips of a topology        | one together |
    | - and exclusive placement, or hosts that are meant to be idle | one each     |
    | others, and groups                                            | one each     |
    """
    if not are_jobs_of_one_pod(request) or request.exclusive_nodes or request.exclusive_topology:
        return False
    return request.replicas * request.chips_per_pod == _chips_of(request.topology or "") and not idles(request)


def sharing(requests: Iterable[TemplateRequest]) -> tuple[str, ...]:
    """Return the replicatedJobs whose Jobs share a slice."""
    return tuple(each.replicated_job for each in requests if share_slice(each))


def slices_of(request: TemplateRequest) -> int:
    """Return how many slices the Jobs of a replicatedJob, or the groups, get."""
    return 1 if share_slice(request) else request.replicas


def are_jobs_of_one_pod(request: TemplateRequest) -> bool:
    """Return whether these are several Jobs of a JobSet, of one pod each."""
    return bool(request.replicated_job) and request.replicas > 1 and request.parallelism == request.completions == 1


def idles(request: TemplateRequest) -> bool:
    """Return whether fewer pods than hosts are meant."""
    return dict(request.requested_annotations).get(IDLE_HOSTS) == "true"


def _chips_of(topology: str) -> int:
    """Return the number of chips; 0 if it is no topology."""
    try:
        return Topology.parse(topology).chips
    except ValueError:
        return 0
