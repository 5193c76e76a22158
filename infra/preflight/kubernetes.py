"""What the API server of a cluster says: that it can be reached, and serves what the relay and its rules need."""

from collections.abc import Collection, Iterator, Mapping

from infra.preflight.answers import Answer, Denied, Found, Missing, Unreachable, unknown
from infra.preflight.findings import Finding, error, unread, warning
from infra.preflight.manifests import Manifest

VERSION = "/version"
JOBSET = "/apis/jobset.x-k8s.io/v1alpha2"
ADMISSION = "admissionregistration.k8s.io"
INSTALL_JOBSET = (
    "kubectl apply --server-side -f https://github.com/kubernetes-sigs/jobset/releases/download/v0.10.1/manifests.yaml"
)


def admission_versions(manifests: Collection[Manifest]) -> list[str]:
    """Return the API versions of admission policies that the manifests use."""
    return sorted({manifest.api_version for manifest in manifests if manifest.group == ADMISSION})


def reachable(answer: Answer) -> Iterator[Finding]:
    """Yield whether the API server answered when it was asked for its version."""
    if isinstance(answer, Denied):
        yield error(
            f"The API server refuses the build's account: {unknown(answer)}. It needs roles/container.admin in the "
            "cluster's project: infra/bootstrap.sh grants it."
        )
    elif isinstance(answer, Unreachable):
        yield error(f"The API server cannot be reached: {unknown(answer)}")
    elif isinstance(answer, Missing):
        yield error("What answers at the control plane's address is no API server.")


def api_findings(jobset: Answer, served: Mapping[str, Answer], manifests: Collection[Manifest]) -> Iterator[Finding]:
    """Yield which APIs are missing; `served` has the resources of each of `admission_versions`."""
    yield from unread("whether JobSet is installed", jobset)
    if isinstance(jobset, Missing):
        yield warning(
            "JobSet is not installed. JobSets are served as soon as it is; Jobs and LeaderWorkerSets are without it.",
            INSTALL_JOBSET,
        )
    for manifest in manifests:
        if manifest.kind.endswith("AdmissionPolicy"):
            yield from _policy(manifest, served[manifest.api_version])


def _policy(manifest: Manifest, answer: Answer) -> Iterator[Finding]:
    yield from unread(f"whether {manifest.kind} of {manifest.api_version} is served", answer)
    served = answer.body.get("resources", ()) if isinstance(answer, Found) else ()
    if isinstance(answer, Denied | Unreachable) or any(each.get("kind") == manifest.kind for each in served):
        return
    what = f"The API server does not serve {manifest.kind} of {manifest.api_version}"
    if not manifest.replaced:
        yield error(f"{what}, which the roll-out applies ({manifest.file}): upgrade the cluster.")
