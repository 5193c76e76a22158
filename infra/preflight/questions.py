"""Which questions are asked, in which order: what an answer names is asked about next."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cache, partial

from infra.preflight import (
    accounts,
    gke,
    inside,
    instances,
    kubernetes,
    kueue,
    network,
    org_policies,
    pinning,
    project,
    quotas,
    self_managed,
    spending,
    workload_policies,
)
from infra.preflight.answers import Answer, Body, Denied, Found, Missing, Unreachable, unknown
from infra.preflight.api import Api
from infra.preflight.findings import Finding, error
from infra.preflight.gke import Endpoint
from infra.preflight.kubectl import ANYBODY, Kubectl
from infra.preflight.manifests import JOB_ENVIRONMENT, Manifest
from infra.preflight.network import Subnetwork
from infra.preflight.place import Place
from infra.preflight.project import Asked
from relay.notices.gating import ANNOTATED, MULTISLICE, POD_OF_A_GANG
from relay.notices.pinning import POD
from tpu_slices.domain.model.clusters import ClusterSettings, ComputeSettings

REPOSITORY = "tpu-slice-provisioner"
"""Of the relay's image: infra/terraform/relay.tf."""
FUNCTIONS_BUCKET = "{project}-tpu-slice-functions"
"""It stands as long as the provisioner does: infra/terraform/functions.tf."""


class Questions:
    """The questions of one run. What several clusters share is asked once."""

    def __init__(self, api: Api, asked: Asked, manifests: Collection[Manifest]) -> None:
        self._api = api
        self._asked = asked
        self._manifests = manifests
        self._policy = cache(self._ask_policy)
        self._number = cache(self._ask_number)
        self._org_policy = cache(self._ask_org_policy)

    def provisioner(self, cluster_projects: Sequence[str]) -> Iterator[Finding]:
        """Yield what is missing in the provisioner's project."""
        asked, remedy = self._asked, project.bootstrap(self._asked, cluster_projects)
        yield from project.api_findings(asked.project, self._services(asked.project, project.APIS), project.APIS)
        yield from project.permission_findings(self._permissions(asked.project, project.ROLES), project.ROLES, remedy)
        yield from project.bucket_findings(
            asked.state_bucket, self._api.get("storage", f"storage/v1/b/{asked.state_bucket}"), remedy
        )
        stands = deployed(self._api, asked.project)
        yield from project.database_findings(
            asked.firestore_location, database(self._api, asked.project), deployed=stands
        )
        allowed = self._api.get(
            "cloudquotas", quotas.path_of(instances.QUOTA.id, asked.project, service=instances.SERVICE)
        )
        yield from instances.instance_findings(asked.project, asked.region, asked.max_instances, allowed)
        policies = self._org_policies(asked.project, org_policies.OF_PROVISIONER)
        places = {"functions and images": asked.region, "the records": asked.firestore_location}
        yield from org_policies.unread_findings(asked.project, policies)
        yield from org_policies.provisioner_findings(asked.project, places, policies, deployed=stands)

    def cluster_project(self, name: str) -> Iterator[Finding]:
        """Yield what is missing in a project with clusters."""
        remedy = project.bootstrap(self._asked, [name])
        yield from project.api_findings(name, self._services(name, project.CLUSTER_APIS), project.CLUSTER_APIS)
        found = self._permissions(name, project.CLUSTER_ROLES, project.CUSTOM_PERMISSIONS)
        yield from project.permission_findings(found, project.CLUSTER_ROLES, remedy, project.CUSTOM_PERMISSIONS)
        if name != self._asked.project:
            policies = self._org_policies(name, org_policies.OF_CLUSTERS)
            yield from org_policies.unread_findings(name, policies)
            yield from org_policies.project_findings(name, policies)

    def alerts(self, name: str) -> Iterator[Finding]:
        """Yield whether alerts in a project notify nobody."""
        remedy = project.bootstrap(self._asked, [] if name == self._asked.project else [name])
        yield from spending.channel_findings(name, self._asked.project, channels(self._api, name), remedy)

    def cluster(self, settings: ClusterSettings) -> Iterator[Finding]:
        """Yield what is missing in a cluster."""
        place = Place.of(settings.path)
        yield from spending.limit_findings(settings)
        yield from self._node_accounts(settings, place)
        yield from self._quotas(settings, place)
        policies = {owner: self._policy(owner) for owner in accounts.reservation_owners(settings, place)}
        yield from accounts.reservation_findings(policies, self._asked.project)
        if settings.pools.compute is not None:
            yield from self._self_managed(settings, settings.pools.compute, place)
            yield from self._policies_of_cluster(settings, place, public_nodes=False)
            return
        yield from self._workload_policies(settings, place)
        found = self._api.get("container", f"v1/{settings.path}")
        match found:
            case Found(cluster):
                yield from gke.cluster_findings(settings, cluster)
                yield from self._relay_accounts(cluster, place)
                yield from self._network(cluster)
                public = network.public_nodes(cluster)
                yield from self._policies_of_cluster(settings, place, public_nodes=public)
                match gke.endpoint(settings, cluster, self._asked.worker_pool):
                    case Endpoint() as endpoint:
                        yield from self._kubernetes(endpoint, settings)
                    case Finding() as finding:
                        yield finding
            case Missing():
                yield error(
                    f"GKE has no cluster {settings.path}: make it, or mend `path` in its file.",
                    f"gcloud container clusters list --project {place.project}",
                )
                yield from self._without_network(place)
            case Denied() | Unreachable():
                yield error(f"GKE does not show the cluster: {unknown(found)}")

    def _self_managed(self, settings: ClusterSettings, compute: ComputeSettings, place: Place) -> Iterator[Finding]:
        """Yield what is missing where the slices of a self-managed cluster are to be."""
        here = f"compute/v1/projects/{place.project}"
        subnetwork = self_managed.subnetwork_of(compute, place)
        found, routers = self._subnetwork(subnetwork)
        yield from self_managed.subnetwork_findings(compute, subnetwork, found, routers)
        if isinstance(found, Missing):
            yield from self._without_network(place)
        yield from self_managed.image_findings(compute.image, self._api.get("compute", f"compute/v1/{compute.image}"))
        if settings.zone is not None:
            zone = self._api.get("compute", f"{here}/zones/{settings.zone}")
            yield from self_managed.zone_findings(settings, zone)
        policy = self._policy(place.project)
        yield from self_managed.agent_findings(place.project, self._number(place.project), policy)

    def _policies_of_cluster(self, settings: ClusterSettings, place: Place, *, public_nodes: bool) -> Iterator[Finding]:
        policies = self._org_policies(place.project, org_policies.OF_CLUSTERS)
        return org_policies.cluster_findings(settings, policies, public_nodes=public_nodes)

    def _without_network(self, place: Place) -> Iterator[Finding]:
        policies = self._org_policies(place.project, [org_policies.NO_DEFAULT_NETWORK])
        return org_policies.network_findings(place.project, policies)

    def _org_policies(self, name: str, constraints: Sequence[str]) -> dict[str, Answer]:
        return {constraint: self._org_policy(name, constraint) for constraint in constraints}

    def _ask_org_policy(self, name: str, constraint: str) -> Answer:
        return self._api.get("orgpolicy", org_policies.path(name, constraint))

    def _node_accounts(self, settings: ClusterSettings, place: Place) -> Iterator[Finding]:
        answers = {
            email: self._api.get("iam", f"v1/projects/-/serviceAccounts/{email}")
            for email in accounts.node_accounts(settings)
        }
        return accounts.node_account_findings(settings, answers, self._policy(place.project))

    def _quotas(self, settings: ClusterSettings, place: Place) -> Iterator[Finding]:
        ids = dict.fromkeys(quota.id for quota in quotas.quotas_of(settings).values())
        answers = {id_: self._api.get("cloudquotas", quotas.path_of(id_, place.project)) for id_ in ids}
        return quotas.quota_findings(settings, answers)

    def _workload_policies(self, settings: ClusterSettings, place: Place) -> Iterator[Finding]:
        folder = f"compute/v1/projects/{place.project}/regions/{place.region}/resourcePolicies"
        answers = {
            name: self._api.get("compute", f"{folder}/{name}") for name in workload_policies.policy_names(settings)
        }
        return workload_policies.workload_policy_findings(settings, self._asked.project, answers)

    def _relay_accounts(self, cluster: Body, place: Place) -> Iterator[Finding]:
        asked = self._asked
        repository = f"projects/{asked.project}/locations/{asked.region}/repositories/{REPOSITORY}"
        for account in accounts.relay_accounts(cluster, self._number(place.project)):
            policies = [self._policy(asked.project), self._api.get("artifactregistry", f"v1/{repository}:getIamPolicy")]
            yield from accounts.image_findings(account, asked.project, policies)

    def _network(self, cluster: Body) -> Iterator[Finding]:
        subnetwork = network.private_subnetwork(cluster)
        if subnetwork is None:
            return
        yield from network.network_findings(subnetwork, *self._subnetwork(subnetwork))

    def _subnetwork(self, subnetwork: Subnetwork) -> tuple[Answer, Answer]:
        """Return what is said of a subnetwork, and of the routers of its region."""
        region = f"compute/v1/projects/{subnetwork.project}/regions/{subnetwork.region}"
        found = self._api.get("compute", f"{region}/subnetworks/{subnetwork.name}")
        return found, self._api.get("compute", f"{region}/routers")

    def _kubernetes(self, endpoint: Endpoint, settings: ClusterSettings) -> Iterator[Finding]:
        version = self._api.kubernetes(endpoint, kubernetes.VERSION)
        yield from kubernetes.reachable(version)
        if not isinstance(version, Found):
            return
        applied = [manifest for manifest in self._manifests if manifest.on_gke]
        served = {
            version: self._api.kubernetes(endpoint, f"/apis/{version}")
            for version in kubernetes.admission_versions(applied)
        }
        yield from kubernetes.api_findings(self._api.kubernetes(endpoint, kubernetes.JOBSET), served, applied)
        yield from pinning.gating_not_tried(settings.gangs)
        yield from _of_kueue(partial(self._api.kubernetes, endpoint), settings.limits.gang_hold_for)

    def _services(self, name: str, apis: Sequence[str]) -> Answer:
        names = [f"projects/{name}/services/{api}.googleapis.com" for api in apis]
        return self._api.get("serviceusage", f"v1/projects/{name}/services:batchGet", names=names)

    def _permissions(self, name: str, roles: Mapping[str, tuple[str, ...]], custom: Sequence[str] = ()) -> Answer:
        wanted = [*(permission for needed in roles.values() for permission in needed), *custom]
        return self._api.post("cloudresourcemanager", f"v3/projects/{name}:testIamPermissions", {"permissions": wanted})

    def _ask_policy(self, name: str) -> Answer:
        options = {"options": {"requestedPolicyVersion": 3}}
        return self._api.post("cloudresourcemanager", f"v3/projects/{name}:getIamPolicy", options)

    def _ask_number(self, name: str) -> str:
        """Return the number of a project, or its name where the number cannot be read."""
        match self._api.get("cloudresourcemanager", f"v3/projects/{name}"):
            case Found(body):
                return str(body.get("name", "")).removeprefix("projects/")
            case _:
                return name


def of_api_server(kubectl: Kubectl, settings: ClusterSettings, applied: Collection[Manifest]) -> Iterator[Finding]:
    """Yield what is missing inside a self-managed cluster; `applied` is what is to be applied there."""
    version, compute = kubectl.get(kubernetes.VERSION), settings.pools.compute
    yield from inside.reachable(version)
    if not isinstance(version, Found) or compute is None:
        return
    minor = inside.minor_of(version.body)
    yield from inside.version_findings(compute, minor)
    yield from inside.relay_findings(kubectl.get(inside.NAMESPACE), kubectl.get(inside.NODES))
    needed = [manifest for manifest in applied if manifest.file != JOB_ENVIRONMENT]
    served = {version: kubectl.get(f"/apis/{version}") for version in kubernetes.admission_versions(needed)}
    yield from kubernetes.api_findings(kubectl.get(kubernetes.JOBSET), served, needed)
    yield from inside.daemon_set_findings(settings.cluster, kubectl.get(inside.DAEMON_SETS))
    environment = (kubectl.get(path) for path in inside.JOB_ENVIRONMENT)
    yield from inside.environment_findings(minor, environment)
    yield from pinning.pinning_findings(minor, kubectl.tried(POD))
    tried = (kubectl.tried(each) for each in (POD_OF_A_GANG, ANNOTATED, MULTISLICE))
    yield from pinning.gating_findings(settings.gangs, *tried)
    yield from inside.joining_findings(settings, kubectl.get(inside.CLUSTER_INFO, *ANYBODY))
    yield from _of_kueue(kubectl.get, settings.limits.gang_hold_for)


def _of_kueue(ask: Callable[[str], Answer], held_for: timedelta) -> Iterator[Finding]:
    """Yield what is to be said of Kueue; of its queues nothing is asked where it is not installed."""
    group, config = ask(kueue.GROUP), ask(kueue.CONFIG)
    yield from kueue.kueue_findings(group, config, held_for)
    if isinstance(group, Found):
        checks, queues, flavors = (ask(each) for each in (kueue.CHECKS, kueue.QUEUES, kueue.FLAVORS))
        yield from kueue.check_findings(checks, queues, flavors, config)


def database(api: Api, name: str) -> Answer:
    return api.get("firestore", f"v1/projects/{name}/databases/(default)")


def channels(api: Api, name: str) -> Answer:
    """Return the notification channels of a project."""
    return api.get("monitoring", spending.channels_path(name), pageSize=1000)


def deployed(api: Api, name: str) -> bool:
    return isinstance(api.get("storage", f"storage/v1/b/{FUNCTIONS_BUCKET.format(project=name)}"), Found)
