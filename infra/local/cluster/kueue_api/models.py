"""The fields of kueue.x-k8s.io/v1beta1 as models, which `shapes` reads.

Source: apis/kueue/v1beta1 of sigs.k8s.io/kueue. Status fields that only topologies and MultiKueue use accept
any value. A field without a default is required by the CRD's schema.
"""

from datetime import datetime
from typing import Any, NewType

from kubernetes import client
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

Quantity = NewType("Quantity", str)
"""resource.Quantity; in YAML it may be a number."""

Anything = Any | None


class _Model(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, use_attribute_docstrings=True, arbitrary_types_allowed=True, protected_namespaces=()
    )


class _Object(_Model):
    api_version: str | None = None
    kind: str | None = None
    metadata: client.V1ObjectMeta | None = None


class ResourceFlavorSpec(_Model):
    node_labels: dict[str, str] | None = None
    """Labels of the nodes of this flavor, at most 8. They are added to the node selector of admitted pods."""
    node_taints: list[client.V1Taint] | None = None
    """Taints of the nodes of this flavor. A podSet that does not tolerate them does not get the flavor."""
    tolerations: list[client.V1Toleration] | None = None
    """Tolerations that are added to admitted pods."""
    topology_name: str | None = None


class ResourceFlavor(_Object):
    """A kind of node, defined by labels and taints."""

    spec: ResourceFlavorSpec | None = None


class WorkloadPriorityClass(_Object):
    """A named priority of Workloads, apart from the priority of their pods."""

    value: int
    """The priority; higher values go first. A change has no effect on existing Workloads."""
    description: str | None = None


class FairSharing(_Model):
    weight: Quantity | None = None


class LocalQueueSpec(_Model):
    cluster_queue: str | None = None
    """The ClusterQueue whose quota this queue uses; it is immutable."""
    fair_sharing: FairSharing | None = None
    stop_policy: str | None = None
    """None, Hold (admit no more) or HoldAndDrain (evict what is admitted, too)."""


class ResourceUsage(_Model):
    name: str
    total: Quantity | None = None
    borrowed: Quantity | None = None


class FlavorUsage(_Model):
    name: str
    resources: list[ResourceUsage]


class LocalQueueStatus(_Model):
    admitted_workloads: int | None = None
    conditions: list[client.V1Condition] | None = None
    fair_sharing: Anything = None
    flavor_usage: list[FlavorUsage] | None = None
    flavors: Anything = None
    flavors_reservation: list[FlavorUsage] | None = None
    pending_workloads: int | None = None
    reserving_workloads: int | None = None


class LocalQueue(_Object):
    """A queue through which the Workloads of a namespace use a ClusterQueue."""

    spec: LocalQueueSpec | None = None
    status: LocalQueueStatus | None = None


class AdmissionCheckStrategyRule(_Model):
    name: str
    on_flavors: list[str] | None = None


class AdmissionChecksStrategy(_Model):
    admission_checks: list[AdmissionCheckStrategyRule] | None = None


class AdmissionScope(_Model):
    admission_mode: str


class FlavorFungibility(_Model):
    preference: str | None = None
    when_can_borrow: str | None = None
    when_can_preempt: str | None = None
    """Whether to try the next flavor if this one fits only after preemption."""


class BorrowWithinCohort(_Model):
    max_priority_threshold: int | None = None
    policy: str | None = None


class ClusterQueuePreemption(_Model):
    borrow_within_cohort: BorrowWithinCohort | None = None
    reclaim_within_cohort: str | None = None
    within_cluster_queue: str | None = None
    """Which Workloads of this ClusterQueue a pending one may preempt: Never, LowerPriority, ..."""


class FlavorResourceQuota(_Model):
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None
    name: str
    nominal_quota: Quantity
    """How much of the resource the admitted Workloads may use in total."""


class FlavorQuotas(_Model):
    name: str
    """The ResourceFlavor."""
    resources: list[FlavorResourceQuota]
    """A quota for each of the group's coveredResources, in the same order."""


class ResourceGroup(_Model):
    covered_resources: list[str]
    flavors: list[FlavorQuotas]
    """The flavors that provide these resources, in the order in which they are tried."""


class ClusterQueueSpec(_Model):
    admission_checks: list[str] | None = None
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    admission_scope: AdmissionScope | None = None
    cohort: str | None = None
    fair_sharing: FairSharing | None = None
    flavor_fungibility: FlavorFungibility | None = None
    namespace_selector: client.V1LabelSelector | None = None
    """The namespaces whose Workloads are admitted: none if it is not set, all if it is empty."""
    preemption: ClusterQueuePreemption | None = None
    queueing_strategy: str | None = None
    """StrictFIFO: the first Workload blocks those behind it. BestEffortFIFO: one that does not fit is skipped."""
    resource_groups: list[ResourceGroup] | None = None
    stop_policy: str | None = None
    """None, Hold (admit no more) or HoldAndDrain (evict what is admitted, too)."""


class ClusterQueueStatus(_Model):
    admitted_workloads: int | None = None
    conditions: list[client.V1Condition] | None = None
    fair_sharing: Anything = None
    flavors_reservation: list[FlavorUsage] | None = None
    flavors_usage: list[FlavorUsage] | None = None
    pending_workloads: int | None = None
    pending_workloads_status: Anything = None
    reserving_workloads: int | None = None


class ClusterQueue(_Object):
    """A pool of quota, by flavor and resource, and the rules of its queue."""

    spec: ClusterQueueSpec | None = None
    status: ClusterQueueStatus | None = None


class PodSetTopologyRequest(_Model):
    pod_index_label: str | None = None
    pod_set_group_name: str | None = None
    pod_set_slice_required_topology: str | None = None
    pod_set_slice_size: int | None = None
    preferred: str | None = None
    required: str | None = None
    sub_group_count: int | None = None
    sub_group_index_label: str | None = None
    unconstrained: bool | None = None


class PodSet(_Model):
    """A set of identical pods."""

    count: int
    min_count: int | None = None
    name: str | None = None
    template: client.V1PodTemplateSpec
    topology_request: PodSetTopologyRequest | None = None


class WorkloadSpec(_Model):
    active: bool | None = None
    """Whether the Workload may be admitted. Setting it to false evicts an admitted one."""
    maximum_execution_time_seconds: int | None = None
    pod_sets: list[PodSet]
    priority: int | None = None
    priority_class_name: str | None = None
    priority_class_source: str | None = None
    queue_name: str | None = None
    """The LocalQueue."""


class PodSetAssignment(_Model):
    count: int | None = None
    delayed_topology_request: str | None = None
    flavors: dict[str, str] | None = None
    name: str | None = None
    resource_usage: dict[str, Quantity] | None = None
    topology_assignment: Anything = None


class Admission(_Model):
    cluster_queue: str
    pod_set_assignments: list[PodSetAssignment]


class PodSetUpdate(_Model):
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    name: str
    node_selector: dict[str, str] | None = None
    tolerations: list[client.V1Toleration] | None = None


class AdmissionCheckState(_Model):
    last_transition_time: datetime
    message: str
    name: str
    pod_set_updates: list[PodSetUpdate] | None = None
    requeue_after_seconds: int | None = None
    retry_count: int | None = None
    state: str


class ReclaimablePod(_Model):
    count: int
    name: str


class RequeueState(_Model):
    count: int | None = None
    requeue_at: datetime | None = None


class PodSetRequest(_Model):
    name: str
    resources: dict[str, Quantity] | None = None


class SchedulingStatsEviction(_Model):
    count: int
    reason: str
    underlying_cause: str


class SchedulingStats(_Model):
    evictions: list[SchedulingStatsEviction] | None = None


class WorkloadStatus(_Model):
    accumulated_past_exexcution_time_seconds: int | None = None
    """For how long the Workload was admitted before; the spelling is that of v1beta1."""
    admission: Admission | None = None
    admission_checks: list[AdmissionCheckState] | None = None
    cluster_name: str | None = None
    conditions: list[client.V1Condition] | None = None
    nominated_cluster_names: list[str] | None = None
    reclaimable_pods: list[ReclaimablePod] | None = None
    requeue_state: RequeueState | None = None
    resource_requests: list[PodSetRequest] | None = None
    scheduling_stats: SchedulingStats | None = None
    unhealthy_nodes: Anything = None


class Workload(_Object):
    """A set of pods that is admitted as a whole, for example for a JobSet."""

    spec: WorkloadSpec | None = None
    status: WorkloadStatus | None = None
