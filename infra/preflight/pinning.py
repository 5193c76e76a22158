"""Whether pods with chips are kept to the hosts that are meant for them, as a pod shows that is not stored."""

from collections.abc import Iterator

from infra.preflight.answers import Answer, Denied, Found, Unreachable, unknown
from infra.preflight.findings import Finding, error, unread, warning
from relay.notices.pinning import WEBHOOK, is_judged
from tpu_slices.domain.reporting.reason_texts import PODS_REFUSED

WITH_POLICIES = 36
"""The minor version of Kubernetes from which on the policy can be applied."""
_BY_POLICY = "kubectl apply --server-side --filename infra/kubernetes/admission.yaml"
_BY_WEBHOOK = "gcloud builds log BUILD    # the build's last lines have the commands that apply the webhook"


def pinning_findings(minor: int, tried: Answer) -> Iterator[Finding]:
    """Yield that a new pod with chips is not pinned, or cannot be created; `minor` is the version of Kubernetes."""
    if isinstance(tried, Denied | Unreachable) and WEBHOOK in unknown(tried):
        yield error(
            PODS_REFUSED,
            "kubectl get pods --namespace tpu-slice-provisioner --selector app.kubernetes.io/name=webhook",
        )
        return
    yield from unread("whether pods are pinned to slices", tried)
    if isinstance(tried, Found) and not is_judged(tried.body):
        yield warning(
            "Pods are not pinned to slices: Jobs of several hosts are refused unless their pods are kept together by "
            "exclusive topology, and any pod with chips may take hosts that are meant for others.",
            _BY_POLICY if minor >= WITH_POLICIES else _BY_WEBHOOK,
        )
