"""What was told of each workload's state, and what there is to tell. Pure.

| the workload, compared with what was told of it                         | there is to tell |
|-------------------------------------------------------------------------|------------------|
| nothing was told, or somebody asks                                      | the first        |
| it ended                                                                | an end           |
| is suspended, and was told to be active                                 | an end           |
| has fewer groups                                                        | an end           |
| is suspended as it was told, or has as many groups, but was resumed or  | an end           |
| scaled meanwhile, and the functions know: Jobs were told to be on hosts |                  |
| at a generation since then, or a question was answered                  |                  |
| is in another form                                                      | a renewal        |
| is in the same form                                                     | nothing          |

An end lets hosts go. The functions take a Job for live that was on hosts at a later generation than that of its
workload's suspension: told to be suspended before, it must be told again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from relay.objects import Workload
from tpu_slices.domain.model.facts import Fact, HostsChanged, WorkloadState
from tpu_slices.domain.model.node_groups import NodeGroup
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.records.standings import standing

ANY_GROUP = 2**31
"""More groups than there can be."""


class ToTell(Enum):
    """What there is to tell of a workload's state."""

    NOTHING = auto()
    FIRST = auto()
    END = auto()
    RENEWAL = auto()


class Form(NamedTuple):
    """What is told of a workload's state."""

    state: WorkloadState
    queue: str
    parse_error: str | None
    groups: int | None
    group: NodeGroup | None
    tellable: bool = True
    notify: str = ""
    unserved: str = ""


@dataclass(slots=True)
class _Told:
    form: Form
    generation: int
    most_groups: int | None
    """Of a LeaderWorkerSet: the groups that the functions may take for its own."""
    used: bool = False
    """Whether the functions may take it for active at a later generation."""


class StatesTold:
    """By workload, until it is gone."""

    def __init__(self) -> None:
        self._told: dict[WorkloadUid, _Told] = {}

    def to_tell(self, workload: Workload) -> ToTell:
        told, form = self._told.get(workload.ref.owner.uid), _form(workload)
        if told is None:
            return ToTell.FIRST
        if (form != told.form and form.state.ended) or _ends_use(workload, told):
            return ToTell.END
        return ToTell.NOTHING if form == told.form else ToTell.RENEWAL

    def tell(self, workload: Workload) -> None:
        """Record that the state of a workload is told as it is."""
        groups = workload.ref.groups
        self._told[workload.ref.owner.uid] = _Told(_form(workload), workload.ref.generation, groups)

    def tell_demand(self, workload: Workload) -> None:
        """Record that demand is told: it says that the workload is active, and how many groups it has."""
        uid, groups = workload.ref.owner.uid, workload.ref.groups
        before = self._told.get(uid)
        form = before.form if before else Form(WorkloadState.ACTIVE, "", None, groups, None)
        form = form._replace(state=WorkloadState.ACTIVE, groups=groups, group=None, tellable=True)
        self._told[uid] = _Told(form, workload.ref.generation, groups)

    def tell_hosts(self, facts: Iterable[Fact]) -> None:
        """Record who is told to be on hosts."""
        for each in (it for fact in facts if isinstance(fact, HostsChanged) for it in fact.occupants):
            told = self._told.get(each.owner.uid)
            if told is not None and each.generation > told.generation:
                told.used = True
                if told.most_groups is not None:
                    told.most_groups = max(told.most_groups, each.job_index + 1)

    def answered(self, workload: Workload) -> None:
        """Record that a question about a workload is answered by what the API server says: this, or what is next."""
        if (told := self._told.get(workload.ref.owner.uid)) is not None:
            told.form = told.form._replace(state=workload.state, groups=workload.ref.groups)
            told.generation, told.used = workload.ref.generation, True
            told.most_groups = None if told.most_groups is None else ANY_GROUP

    def lapsed(self, uid: WorkloadUid) -> None:
        """Record that a workload may not be told of any more."""
        if (told := self._told.get(uid)) is not None:
            told.form = told.form._replace(tellable=False)

    def lets_demand(self, uid: WorkloadUid) -> bool:
        """Return whether demand says nothing new of a workload's state: it was told to be active, or nothing was."""
        told = self._told.get(uid)
        return told is None or told.form.state is WorkloadState.ACTIVE

    def is_known(self, uid: WorkloadUid) -> bool:
        return uid in self._told

    def standing(self, uid: WorkloadUid) -> int | None:
        """Return the standing that was told of a workload that lives; None: none was."""
        told = self._told.get(uid)
        if told is None or told.form.state.ended:
            return None
        form = told.form
        return standing(uid, form.state, form.queue, form.parse_error, form.groups, notify=form.notify)

    def forget(self, uid: WorkloadUid) -> None:
        self._told.pop(uid, None)


def _form(workload: Workload) -> Form:
    return Form(
        state=workload.state,
        queue=workload.queue,
        parse_error=workload.parse_error,
        groups=workload.ref.groups,
        group=workload.group,
        tellable=workload.tellable,
        notify=workload.notify,
        unserved=workload.unserved,
    )


def _ends_use(workload: Workload, told: _Told) -> bool:
    """Return whether hosts may go that the functions keep for a workload by what they were told."""
    groups, later = workload.ref.groups, workload.ref.generation > told.generation
    if groups is not None and told.most_groups is not None and groups < told.most_groups:
        return True
    suspended = workload.state is WorkloadState.SUSPENDED
    return suspended and (told.form.state is WorkloadState.ACTIVE or (told.used and later))
