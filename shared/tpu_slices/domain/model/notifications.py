"""What is told outside the cluster of a workload, to whom, and when.

Whom a namespace may have notified, and of what, its cluster's settings say; which of these a workload has notified, its
annotation NOTIFY.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from tpu_slices.domain.model.slices import ClusterId, Owner

NOTIFY = "tpu-provisioner.cloud.google.com/notify"
"""The annotation of a workload that names its targets, with commas between, or NOBODY."""
NOTIFY_CHARACTERS = 253
"""The most characters of it that are read."""
NOBODY = "none"


class Occasion(StrEnum):
    """What a target is notified of, in the words of the settings."""

    WAITING = "waiting"  # for slices, or in a queue of Kueue, longer than the rule's `waiting_after`
    NOT_RUNNING = "not-running"  # its slices are ready, and some of its pods do not run
    IDLE = "idle"  # its slices are ready, and nobody uses some of them
    INTERRUPTED = "interrupted"  # hosts of a slice that was ready were preempted, are lost, or are made anew
    ENDED = "ended"  # it completed, failed, or was deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRule:
    """Of what a target is notified in a namespace."""

    when: tuple[Occasion, ...] = tuple(Occasion)
    waiting_after: timedelta = timedelta(minutes=30)
    """How long a workload has waited when the target is notified of it."""
    only_if_named: bool = False
    """Only of workloads that name the target; otherwise of those, too, that name none."""


Rules = Mapping[str, NotificationRule]
"""By target."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The targets that are notified of a workload."""

    rules: Rules
    unknown: tuple[str, ...] = ()
    """What its annotation names beside, which is no target of its namespace."""


def chosen(rules: Rules, annotation: str) -> Chosen:
    """Return which targets of a namespace are notified of a workload with this annotation.

    | annotation  | notified                                               |
    |-------------|--------------------------------------------------------|
    | empty       | all targets of the namespace but those `only_if_named` |
    | `none`      | nobody                                                 |
    | names       | the targets of the namespace that it names             |
    """
    names = dict.fromkeys(name.strip() for name in annotation.split(",") if name.strip())
    if not names:
        return Chosen({target: rule for target, rule in rules.items() if not rule.only_if_named})
    named = {name: rules[name] for name in names if name in rules}
    return Chosen(named, tuple(name for name in names if name not in rules and name != NOBODY))


def unknown_targets(rules: Rules, annotation: str) -> str:
    """Return which targets an annotation names that its namespace does not have, with the remedy; empty: none."""
    if not (unknown := chosen(rules, annotation).unknown):
        return ""
    names = ", ".join(f'"{name}"' for name in unknown)
    has = f"name {' or '.join(rules)}" if rules else "remove it, or ask who operates the cluster for `notifications`"
    return f"The annotation {NOTIFY} names {names}. This namespace has no such target, and none is notified: {has}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """That a target was notified of something."""

    since: datetime
    """Since when that lasted, or when it happened: what began later is another thing."""
    at: datetime
    """When the notification was made."""
    sent: bool = True
    """Whether it was published; False: that is not known, and it is published again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What one target is told of one thing that happened to a workload."""

    id: str
    """The same whenever it is sent again: targets may know by it what they have already."""
    target: str
    occasion: Occasion
    cluster: ClusterId
    owner: Owner
    since: datetime
    """Since when it lasts, or when it happened."""
    at: datetime
    """When it was made."""
    title: str
    text: str
    details: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What programs read: the state of the workload, and the reason of its report."""
