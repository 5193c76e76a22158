"""What the project of the provisioner, and each project with clusters, must have before a build."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from infra.preflight.answers import Answer, Denied, Found, Missing, Unreachable, unknown
from infra.preflight.findings import Finding, error, unread, warning

ACCOUNT = "tpu-slice-deployer"
APIS = (
    "artifactregistry", "cloudbuild", "cloudfunctions", "cloudquotas", "cloudresourcemanager", "cloudscheduler",
    "compute", "container", "firestore", "iam", "iamcredentials", "logging", "monitoring", "orgpolicy",
    "pubsub", "run", "serviceusage", "storage",
)  # fmt: skip
"""In the provisioner's project. `compute`, `cloudquotas`, `orgpolicy` too: Google counts what the build asks there."""
CLUSTER_APIS = (
    "cloudquotas", "cloudresourcemanager", "compute", "container", "iam", "logging", "monitoring", "serviceusage",
)  # fmt: skip
"""In each project with clusters."""

ROLES: Mapping[str, tuple[str, ...]] = {
    "roles/artifactregistry.admin": ("artifactregistry.repositories.create",),
    "roles/cloudfunctions.developer": ("cloudfunctions.functions.create",),
    "roles/cloudquotas.viewer": ("cloudquotas.quotas.get",),
    "roles/cloudscheduler.admin": ("cloudscheduler.jobs.create",),
    "roles/datastore.owner": ("datastore.databases.create", "datastore.entities.get"),
    "roles/iam.serviceAccountAdmin": ("iam.serviceAccounts.create", "iam.serviceAccounts.setIamPolicy"),
    "roles/iam.serviceAccountUser": ("iam.serviceAccounts.actAs",),
    "roles/logging.configWriter": ("logging.logMetrics.create",),
    "roles/logging.logWriter": ("logging.logEntries.create",),
    "roles/logging.viewer": ("logging.logEntries.list",),
    "roles/monitoring.alertPolicyEditor": ("monitoring.alertPolicies.create",),
    "roles/monitoring.dashboardEditor": ("monitoring.dashboards.create",),
    "roles/monitoring.notificationChannelViewer": ("monitoring.notificationChannels.list",),
    "roles/pubsub.admin": ("pubsub.topics.setIamPolicy",),
    "roles/resourcemanager.projectIamAdmin": ("resourcemanager.projects.setIamPolicy",),
    "roles/run.admin": ("run.services.setIamPolicy",),
    "roles/serviceusage.serviceUsageAdmin": ("serviceusage.services.enable",),
    "roles/storage.admin": ("storage.buckets.create", "storage.objects.create"),
}
"""The roles of the build's account in the provisioner's project, and permissions by which each is recognized."""
CLUSTER_ROLES: Mapping[str, tuple[str, ...]] = {
    "roles/container.admin": ("container.clusters.connect", "container.clusterRoles.bind"),
    "roles/iam.roleAdmin": ("iam.roles.create",),
    "roles/iam.serviceAccountAdmin": ("iam.serviceAccounts.setIamPolicy",),
    "roles/logging.configWriter": ("logging.sinks.create",),
    "roles/monitoring.alertPolicyEditor": ("monitoring.alertPolicies.create",),
    "roles/monitoring.notificationChannelViewer": ("monitoring.notificationChannels.list",),
    "roles/resourcemanager.projectIamAdmin": ("resourcemanager.projects.setIamPolicy",),
}
"""The same in each project with clusters."""
CUSTOM_PERMISSIONS = (
    "cloudquotas.quotas.get",
    "compute.images.get",
    "compute.images.getFromFamily",
    "compute.regionOperations.get",
    "compute.resourcePolicies.create",
    "compute.resourcePolicies.delete",
    "compute.resourcePolicies.get",
    "compute.routers.list",
    "compute.subnetworks.get",
    "compute.zones.get",
    "orgpolicy.policy.get",
    "serviceusage.services.get",
)
"""Of a custom role in each project with clusters: predefined ones that have these can create machines, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a build is told: its substitutions, and the variables of Terraform that preflight judges."""

    project: str
    region: str
    state_bucket: str
    firestore_location: str
    worker_pool: str = ""
    max_instances: int
    """A variable of the Terraform root: infra/terraform/variables.tf."""

    def missing(self) -> list[str]:
        """Return the names of those that must be set and are not."""
        required = {
            "_STATE_BUCKET": self.state_bucket,
            "_REGION": self.region,
            "_FIRESTORE_LOCATION": self.firestore_location,
        }
        return [name for name, value in required.items() if not value]


def bootstrap(asked: Asked, cluster_projects: Sequence[str]) -> str:
    """Return the command that makes the project ready, and those with its clusters."""
    where = (
        f"--region {asked.region} --firestore-location {asked.firestore_location} --state-bucket {asked.state_bucket}"
    )
    clusters = "".join(f" --cluster-project {each}" for each in cluster_projects)
    return f"infra/bootstrap.sh --project {asked.project} {where}{clusters}"


def api_findings(project: str, services: Answer, apis: Sequence[str]) -> Iterator[Finding]:
    """Yield which APIs are off, by the states of services that Service Usage tells."""
    if not isinstance(services, Found):
        yield error(
            f"Whether the APIs of {project} are on could not be read: {_why(services)}",
            f"gcloud services enable serviceusage.googleapis.com --project {project}",
        )
        return
    on = {
        service["config"]["name"].removesuffix(".googleapis.com")
        for service in services.body.get("services", ())
        if service.get("state") == "ENABLED"
    }
    if off := [f"{api}.googleapis.com" for api in apis if api not in on]:
        yield error(f"APIs are off: {', '.join(off)}.", f"gcloud services enable {' '.join(off)} --project {project}")


def permission_findings(
    permissions: Answer, roles: Mapping[str, tuple[str, ...]], remedy: str, custom: Sequence[str] = ()
) -> Iterator[Finding]:
    """Yield which roles the build's account lacks, by the permissions that it was found to have."""
    if not isinstance(permissions, Found):
        yield error(f"The permissions of the build's account could not be read: {_why(permissions)}", remedy)
        return
    has = set(permissions.body.get("permissions", ()))
    lacking = [role for role, needed in roles.items() if not has.issuperset(needed)]
    lacking += [permission for permission in custom if permission not in has]
    if lacking:
        yield error(f"The build's account {ACCOUNT} lacks {', '.join(lacking)}.", remedy)


def bucket_findings(bucket: str, answer: Answer, remedy: str) -> Iterator[Finding]:
    """Yield what is wrong with the bucket of Terraform's state."""
    if not isinstance(answer, Found):
        yield error(f"The bucket gs://{bucket} of Terraform's state cannot be read: {_why(answer)}", remedy)
        return
    access = answer.body.get("iamConfiguration", {})
    kept = {
        "--versioning": answer.body.get("versioning", {}).get("enabled"),
        "--uniform-bucket-level-access": access.get("uniformBucketLevelAccess", {}).get("enabled"),
        "--public-access-prevention": access.get("publicAccessPrevention") == "enforced",
    }
    if lacking := [flag for flag, on in kept.items() if not on]:
        yield warning(
            f"gs://{bucket}, which has Terraform's state, lacks {', '.join(flag.strip('-') for flag in lacking)}.",
            f"gcloud storage buckets update gs://{bucket} {' '.join(lacking)}",
        )


def database_findings(location: str, answer: Answer, *, deployed: bool) -> Iterator[Finding]:
    """Yield what is wrong with the Firestore database `(default)`; `deployed`: the provisioner was, in this project."""
    yield from unread("whether there is a Firestore database", answer)
    if not isinstance(answer, Found):
        return
    place = answer.body.get("locationId")
    if answer.body.get("type") != "FIRESTORE_NATIVE":
        yield error("The Firestore database (default) is in Datastore mode: use a project of its own.")
    elif place != location:
        yield error(
            f"The Firestore database (default) is in {place}, and cannot be moved to {location}.",
            f"--substitutions=_FIRESTORE_LOCATION={place}",
        )
    elif not deployed:
        yield warning(
            "There is a Firestore database (default), and the provisioner was not deployed here. Unless "
            "infra/terraform/terraform.tfvars says that it is to be taken over, the build would make it, and fail.",
            'database = "existing"',
        )


def _why(answer: Denied | Unreachable | Missing) -> str:
    return "there is none" if isinstance(answer, Missing) else unknown(answer)
