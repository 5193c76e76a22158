"""Whether pods with chips are kept to their hosts, and those of gangs are held, as objects show that are not stored."""

from collections.abc import Iterator

from infra.preflight.answers import Answer, Denied, Found, Unreachable, unknown
from infra.preflight.findings import Finding, error, note, unread, warning
from relay.notices.gating import gating_of
from relay.notices.pinning import WEBHOOK, is_judged
from tpu_slices.domain.model.gangs import Gangs
from tpu_slices.domain.reporting.gating import as_set, not_as_set
from tpu_slices.domain.reporting.reason_texts import PODS_REFUSED

WITH_POLICIES = 36
"""The minor version of Kubernetes from which on the policy can be applied."""
_BY_POLICY = "kubectl apply --server-side --filename infra/kubernetes/admission.yaml"
_BY_WEBHOOK = "gcloud builds log BUILD    # the build's last lines have the commands that apply the webhook"
_GATING = "gcloud builds log BUILD    # the build's last lines have the commands that apply it with these settings"


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


def gating_not_tried(gangs: Gangs) -> Iterator[Finding]:
    """Yield that JobSets of several slices are to be held, where no pod can be tried from outside of the cluster."""
    if gangs is Gangs.MULTISLICE:
        yield note(
            "The setting `gangs` is multislice. Whether the cluster holds the pods of JobSets of several slices is not "
            "known from here: the roll-out applies policies or webhook with that setting, and slices doctor says after "
            "it what they make of a JobSet.",
            "slices doctor",
        )


def gating_findings(gangs: Gangs, *tried: Answer) -> Iterator[Finding]:
    """Yield that gangs are not held as `gangs` says; `tried`: what was.

    Nothing is said where JobSet or the relay's namespace is missing, which is a finding of its own.
    """
    if refused := next((each for each in tried if isinstance(each, Denied | Unreachable)), None):
        yield from unread("whether the pods of gangs are held", refused)
        return
    made = [each.body for each in tried if isinstance(each, Found)]
    if len(made) == len(tried):
        gating = gating_of(*made)
        if not as_set(gangs, gating):
            yield warning(f"{not_as_set(gangs, gating)}.", _GATING)
