"""What would cost money unseen: alerts that notify nobody, and clusters whose chips nothing limits."""

from collections.abc import Iterator

from infra.preflight.answers import Answer, Body, Found
from infra.preflight.findings import Finding, note, unread, warning
from tpu_slices.domain.model.clusters import ClusterSettings

MARK = "tpu-slice-provisioner"
"""The user label of channels that alerts notify. Its value is the provisioner's project (infra/bootstrap.sh)."""


def channels_path(project: str) -> str:
    return f"v3/projects/{project}/notificationChannels"


def marked(found: Body, provisioner: str) -> list[Body]:
    """Return the channels that the alerts of a provisioner notify."""
    channels: list[Body] = found.get("notificationChannels", [])
    return [channel for channel in channels if channel.get("userLabels", {}).get(MARK) == provisioner]


def channel_findings(project: str, provisioner: str, answer: Answer, remedy: str) -> Iterator[Finding]:
    """Yield whether the alerts in a project notify nobody; else the addresses, as nothing tells that one is mistyped.

    Channels for e-mail need no verification: they have no `verificationStatus`, and count as working
    (google.monitoring.v3 NotificationChannel).
    """
    yield from unread(f"whom alerts in {project} notify", answer)
    if not isinstance(answer, Found):
        return
    found = marked(answer.body, provisioner)
    if not any(_works(channel) for channel in found):
        why = "none of their channels is enabled and verified" if found else "they have no channel"
        yield warning(
            f"Alerts in {project} notify nobody, {why}: what is wrong, or costs money for nothing, is shown in the "
            "console only.",
            f"{remedy} --notify EMAIL",
        )
        return
    addresses = sorted({_address(channel) for channel in found if channel.get("type") == "email" and _works(channel)})
    if addresses:
        yield note(
            f"Alerts in {project} notify {', '.join(addresses)}. Google does not tell whether mails arrive there: "
            "docs/runbook.md, at its beginning, has the command that causes one."
        )


def _address(channel: Body) -> str:
    told: str = channel.get("labels", {}).get("email_address") or channel.get("displayName") or channel.get("name", "")
    return told


def _works(channel: Body) -> bool:
    return bool(channel.get("enabled", True)) and channel.get("verificationStatus") != "UNVERIFIED"


def limit_findings(settings: ClusterSettings) -> Iterator[Finding]:
    """Yield whether anything limits the chips that are bought at once.

    | chips_per_cluster | chips_per_namespace | told                                       |
    |-------------------|---------------------|--------------------------------------------|
    | set               | any                 | nothing                                    |
    | not set           | of everyone         | nothing, unless a named namespace has none |
    | not set           | not of everyone     | no limit                                   |

    Limits of a slice or of a JobSet are none: there may be any number of both.
    """
    policy = settings.policy
    unlimited = [name for name in policy.namespaces if not policy.counts(name)]
    if policy.chips_per_cluster is not None or (policy.everyone.chips_per_namespace is not None and not unlimited):
        return
    where = f"in namespace {', '.join(unlimited)}" if policy.everyone.chips_per_namespace is not None else "here"
    yield warning(
        f"Nothing but quota limits how many chips are bought {where}, whoever asks: docs/cost.md has what they cost.",
        "policy: {chips_per_cluster: CHIPS}",
    )
