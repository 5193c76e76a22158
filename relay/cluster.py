"""The API server through the official client: what is watched, what is read, what is written (Events, nodes)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import orjson
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from relay import translate
from relay.connection import in_words
from relay.hosts.occupants import HostPod
from relay.notices.unserved_pod import UnservedPod, unserved
from relay.objects import WORKLOADS, Aside, Kind, Known, Pool, Workload, WorkloadName
from relay.pods.reading import pod_of_a_group, pod_of_a_job
from relay.watch import Response, Source
from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.model.slices import Owner, OwnerKind, WorkloadUid
from tpu_slices.domain.model.vendors import GKE, Vendor
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.wire.readers import READERS
from tpu_slices.wire.workloads import JOBSET_NAME

FORBIDDEN = 403
NOT_FOUND = 404
CONFLICT = 409
INTERNAL_ERROR = 500
"""Such as that a webhook does not answer."""
PLURALS = {owner: kind.value for kind, owner in WORKLOADS.items()}
TIMEOUTS = (5.0, 10.0)  # seconds to connect, and to answer
SHORT_TIMEOUTS = (1.0, 1.0)  # for reads that the relay can do without
LIST_TIMEOUTS = (1.0, 5.0)  # for lists that an answer waits for
TRIAL_TIMEOUTS = (5.0, 60.0)  # for what waits for webhooks, one after the other
_MOST_EVENTS = 500
_LONGEST_NAME = 253
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""A subdomain by RFC 1123, as every workload's name is
(kubernetes.io/docs/concepts/overview/working-with-objects/names)."""
BINDINGS = ("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings")
POLICY = "tpu-slice-provisioner"
SCALE_UP = "TriggeredScaleUp"
"""The reason of the Event on a pod for which the cluster autoscaler adds a node
(kubernetes/autoscaler, cluster-autoscaler/processors/status/eventing_scale_up_processor.go)."""


def sources(api: client.ApiClient, *, hosts_in: str = "", serves_pods: bool = False) -> tuple[Source[Kind, Known], ...]:
    """Return what is watched: workloads, leader pods, and the nodes of our pools and of TPU Provisioner's.

    `hosts_in`: where the hosts of a self-managed cluster are; elsewhere TPUNodeGroups count as not installed.
    `serves_pods`: whether pods by themselves are served; else they count as not installed.
    """
    core: Any = client.CoreV1Api(api)  # annotated for typed responses; here all are read raw
    leaders = partial(core.list_pod_for_all_namespaces, label_selector=translate.LEADERS)
    unindexed = partial(
        core.list_pod_for_all_namespaces, label_selector=translate.UNINDEXED, field_selector=translate.NOT_ENDED
    )
    group_leaders = partial(core.list_pod_for_all_namespaces, label_selector=translate.GROUP_LEADERS)
    hosts = partial(core.list_node, label_selector=translate.HOSTS)
    return (
        *(
            _workloads(api, kind, served=bool(hosts_in) or kind is not Kind.NODE_GROUPS)
            for kind in WORKLOADS
            if kind is not Kind.PODS
        ),
        Source(Kind.LEADERS, leaders, pod_of_a_job, "uid", "pods", told_by=translate.told_by_pod),
        Source(Kind.UNINDEXED, unindexed, translate.leader, "uid", "pods", told_by=translate.told_by_pod),
        Source(Kind.GROUP_LEADERS, group_leaders, pod_of_a_group, "uid", "pods", told_by=translate.told_by_pod),
        Source(
            Kind.PODS,
            core.list_pod_for_all_namespaces,  # without a selector: what that loses seems to be deleted
            translate.pod_by_itself,
            "uid",
            "pods",
            lambda: serves_pods,
            translate.told_by_pod,
        ),
        Source(Kind.HOSTS, hosts, partial(translate.host, hosts_in=hosts_in), "name", "nodes"),
    )


def _workloads(api: client.ApiClient, kind: Kind, *, served: bool) -> Source[Kind, Known]:
    """Return the source of a kind of workloads; its API may be one that is not installed."""
    custom: Any = client.CustomObjectsApi(api)
    owner = WORKLOADS[kind]
    group, _, version = owner.api_version.partition("/")
    fetch = partial(custom.list_cluster_custom_object, group, version, kind.value)
    read = partial(translate.workload, READERS[owner])

    def is_installed() -> bool:
        return served and _is_installed(custom, owner)

    return Source(kind, fetch, read, "uid", f"{kind} of {owner.api_version}", is_installed)


def _is_installed(custom: Any, owner: OwnerKind) -> bool:
    if owner is OwnerKind.POD:
        return True
    group, _, version = owner.api_version.partition("/")
    try:
        resources = raw(custom.get_api_resources, group, version, seconds=TIMEOUTS)["resources"]
    except ApiException as error:
        if error.status == NOT_FOUND:
            return False
        raise
    return any(each["name"] == PLURALS[owner] for each in resources)


def unscheduled(
    api: client.ApiClient, vendor: Vendor = GKE, serve: Collection[PodsOf] = ()
) -> Source[Aside, UnservedPod]:
    """Return the pods that have no node; those of JobSets, which are served, are left out."""
    core: Any = client.CoreV1Api(api)
    pods = partial(
        core.list_pod_for_all_namespaces,
        label_selector=f"!{JOBSET_NAME}",
        field_selector="spec.nodeName=,status.phase=Pending",
    )
    return Source(Aside.UNSCHEDULED, pods, partial(unserved, vendor=vendor, serve=serve), "uid", "pods")


class Cluster:
    """Single calls. They raise Permanent if the API server rejects the request itself (400, 422), else Temporary."""

    def __init__(self, api: client.ApiClient) -> None:
        self._core: Any = client.CoreV1Api(api)  # as above
        self._apps: Any = client.AppsV1Api(api)
        self._custom: Any = client.CustomObjectsApi(api)

    def workload(self, owner: Owner) -> Mapping[str, Any] | None:
        """Return a workload as the API server has it; None if there is none of that name.

        Only a NotFound that names the object proves that: an API server without the kind's CRD answers 404 too.
        """
        group, _, version = owner.kind.api_version.partition("/")
        plural = PLURALS[owner.kind]
        with converted_errors():
            try:
                if owner.kind is OwnerKind.POD:
                    return raw(self._core.read_namespaced_pod, owner.name, owner.namespace, seconds=TIMEOUTS)
                read = partial(self._custom.get_namespaced_custom_object, group, version, owner.namespace, plural)
                return raw(read, owner.name, seconds=TIMEOUTS)
            except ApiException as error:
                if error.status == NOT_FOUND and _is_about(error, plural, owner.name):
                    return None
                raise

    def workload_named(self, name: WorkloadName) -> Workload | None:
        """Return the workload of a name as it is now, as the owner of pods; None if there is none that can be read.

        Names are as a pod says: no object has one that is not valid, nor any if its kind's API is not installed.
        """
        if len(name.name) > _LONGEST_NAME or _NAME.fullmatch(name.name) is None:
            return None
        try:
            found = self.workload(Owner(kind=name.kind, namespace=name.namespace, name=name.name, uid=WorkloadUid("")))
        except Temporary:
            with converted_errors():
                if _is_installed(self._custom, name.kind):
                    raise
            return None
        try:
            return translate.owner_of_pods(READERS[name.kind], found) if found else None
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def volume_claim(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return a PersistentVolumeClaim; None if there is none of that name. The timeouts are short."""
        with converted_errors():
            return _found(self._core.read_namespaced_persistent_volume_claim, name, namespace)

    def volume(self, name: str) -> Mapping[str, Any] | None:
        """Return a PersistentVolume, as `volume_claim` does."""
        with converted_errors():
            return _found(self._core.read_persistent_volume, name)

    def deployment(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return a Deployment, as `volume_claim` does."""
        with converted_errors():
            return _found(self._apps.read_namespaced_deployment, name, namespace)

    def replica_set(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return a ReplicaSet, as `volume_claim` does."""
        with converted_errors():
            return _found(self._apps.read_namespaced_replica_set, name, namespace)

    def tried(self, pod: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """Return a new v1 Pod as it would be created, or in which words its creation fails inside the API server.

        Nothing is stored.
        """
        body = client.V1Pod.model_validate(pod)
        create = partial(self._core.create_namespaced_pod, pod["metadata"]["namespace"], body, dry_run="All")
        return _tried(create, "pods")

    def tried_jobset(self, jobset: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """Return a new JobSet as it would be created, as `tried` does a pod."""
        group, version = OwnerKind.JOBSET.api_version.split("/")
        place = (group, version, jobset["metadata"]["namespace"], PLURALS[OwnerKind.JOBSET])
        create = partial(self._custom.create_namespaced_custom_object, *place, dict(jobset), dry_run="All")
        return _tried(create, "JobSets")

    def has_policy(self) -> bool:
        """Return whether the policy of infra/kubernetes/admission.yaml is bound, as `volume_claim` does."""
        read = partial(self._custom.get_cluster_custom_object, *BINDINGS)
        with converted_errors():
            return _found(read, POLICY) is not None

    def scale_ups(self, namespace: str) -> Sequence[Mapping[str, Any]]:
        """Return the v1 Events by which the cluster autoscaler says that it adds nodes for a pod."""
        with converted_errors():
            events = partial(self._core.list_namespaced_event, field_selector=f"reason={SCALE_UP}", limit=_MOST_EVENTS)
            listed: Sequence[Mapping[str, Any]] = raw(events, namespace, seconds=LIST_TIMEOUTS)["items"]
        return listed

    def nodes_of(self, pool: Pool) -> frozenset[str]:
        """Return the names of a pool's nodes; they are listed anew each time.

        A list without a resourceVersion has all that was written before it was asked for
        (kubernetes.io/docs/reference/using-api/api-concepts, "Resource versions").
        """
        with converted_errors():
            nodes = raw(partial(self._core.list_node, label_selector=translate.hosts_of(pool)), seconds=LIST_TIMEOUTS)
        return frozenset(node["metadata"]["name"] for node in nodes["items"])

    def chip_pods_on(self, node: str, *, exactly: bool) -> Sequence[HostPod]:
        """Return the pods that hold chips of a node, and have not ended.

        `exactly`: as of now, listed as `nodes_of` does; else from the API server's cache, which has an index by nodes
        (k8s.io/kubernetes pkg/registry/core/pod/strategy.go, NodeNameIndexFunc), and may be late.
        """
        version = {} if exactly else {"resource_version": "0"}
        pods = partial(self._core.list_pod_for_all_namespaces, field_selector=f"spec.nodeName={node}", **version)
        with converted_errors():
            found = raw(pods, seconds=LIST_TIMEOUTS)["items"]
        return tuple(filter(None, map(translate.pod_on_a_host, found)))

    def post(self, event: Mapping[str, Any]) -> None:
        """Create a v1 Event. An existing one of that name is the same Event: the conflict is ignored.

        So is the error for a namespace that is gone or being terminated: nobody would read the Event.
        """
        with converted_errors(CONFLICT, unless=is_namespace_gone):
            namespace = event["metadata"]["namespace"]
            self._core.create_namespaced_event(
                namespace, client.CoreV1Event.model_validate(event), _request_timeout=TIMEOUTS, _preload_content=False
            )

    def renew(self, event: Mapping[str, Any]) -> None:
        """Patch the v1 Event of that name, or create it if there is none."""
        namespace, name = event["metadata"]["namespace"], event["metadata"]["name"]
        with converted_errors(unless=is_namespace_gone):
            try:
                self._core.patch_namespaced_event(
                    name,
                    namespace,
                    dict(event),
                    _content_type="application/merge-patch+json",
                    _request_timeout=TIMEOUTS,
                    _preload_content=False,
                )
            except ApiException as error:
                if error.status != NOT_FOUND:
                    raise
                self.post(event)

    def open_pod(self, namespace: str, name: str, uid: str) -> None:
        """Remove the scheduling gate of gangs from a pod; that it has none, or is gone, is ignored.

        With another UID it is another pod, of which the API server refuses the patch.
        """
        gates = [{"$patch": "delete", "name": GANG}]
        with converted_errors(NOT_FOUND, CONFLICT):
            self._core.patch_namespaced_pod(
                name,
                namespace,
                {"metadata": {"uid": uid}, "spec": {"schedulingGates": gates}},
                _content_type="application/strategic-merge-patch+json",
                _request_timeout=TIMEOUTS,
                _preload_content=False,
            )

    def patch_node(self, node: str, patch: Mapping[str, Any]) -> None:
        """Send a JSON merge patch of a Node. A conflict or a missing Node is ignored: the watch of nodes shows both."""
        with converted_errors(NOT_FOUND, CONFLICT):
            self._core.patch_node(
                node,
                dict(patch),
                _content_type="application/merge-patch+json",
                _request_timeout=TIMEOUTS,
                _preload_content=False,
            )


def _found(read: Callable[..., Response], *names: str) -> Mapping[str, Any] | None:
    try:
        return raw(read, *names, seconds=SHORT_TIMEOUTS)
    except ApiException as error:
        if error.status == NOT_FOUND:
            return None
        raise


def raw(read: Callable[..., Response], *names: str, seconds: tuple[float, float]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = orjson.loads(read(*names, _request_timeout=seconds, _preload_content=False).data)
    return found


@contextmanager
def converted_errors(*ignored: int, unless: Callable[[ApiException], bool] = lambda _: False) -> Iterator[None]:
    """Raise the client's errors as Temporary or Permanent; ignore these status codes, and where `unless` holds."""
    try:
        yield
    except ApiException as error:
        if error.status not in ignored and not unless(error):
            raise _converted(error) from error
    except HTTPError as error:
        raise Temporary(f"the API server does not answer: {error}") from error
    except orjson.JSONDecodeError as error:
        raise Temporary(f"the API server's answer cannot be parsed: {error}") from error


def is_namespace_gone(error: ApiException) -> bool:
    """Return whether a metav1.Status reports that the namespace does not exist, or is being terminated."""
    try:
        status = orjson.loads(error.body or b"")
    except orjson.JSONDecodeError:
        return False
    details = status.get("details") or {} if isinstance(status, dict) else {}
    causes = {cause.get("reason") for cause in details.get("causes") or ()}
    missing = error.status == NOT_FOUND and details.get("kind") == "namespaces"
    return missing or (error.status == FORBIDDEN and "NamespaceTerminating" in causes)


def _is_about(error: ApiException, plural: str, name: str) -> bool:
    """Return whether an error is a metav1.Status of reason NotFound for this object."""
    try:
        status = orjson.loads(error.body or b"")
    except orjson.JSONDecodeError:
        return False
    details = status.get("details") or {}
    return (status.get("reason"), details.get("kind"), details.get("name")) == ("NotFound", plural, name)


def _converted(error: ApiException) -> Temporary | Permanent:
    """Return Permanent for a request that can never succeed, Temporary for all that may succeed later."""
    if error.status in {400, 422}:
        return Permanent(f"the API server refused: {error.status} {error.reason}")
    return Temporary(f"the API server refused: {error.status} {error.reason}")


def _tried(create: Callable[..., Any], kind: str) -> Mapping[str, Any] | str:
    """Return an object as a dry run would create it, or in which words that fails inside the API server."""
    with converted_errors():
        try:
            return raw(create, seconds=TRIAL_TIMEOUTS)
        except ApiException as error:
            if error.status != INTERNAL_ERROR:
                raise
            return in_words(error, kind)
