"""How a gang stands, and its place in the line of its cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NewType

from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import WorkloadUid

GangKey = NewType("GangKey", str)  # {uid of the workload}/{name of the gang}


class GangState(StrEnum):
    """What holds for all claims of a gang."""

    WAITS = "WAITS"  # no slice is made for any of them
    FORMS = "FORMS"  # slices are made, and those that stand are held
    STANDS = "STANDS"  # the slices of all of them stand, or stood when this was last looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Claims of one workload whose pods start together."""

    replicated_jobs: tuple[str, ...]
    """Those whose claims are of it."""
    claims: int
    """How many slices it needs."""
    chips: int
    """Those of all of them together."""
    hold_for: timedelta | None = None
    """For how long slices of it are held, as its workload says; None: as the settings say."""
    since: datetime
    """Since when it waits in line: who waits longer comes first. Anew once its slices were held for too long."""
    state: GangState = GangState.WAITS
    state_since: datetime
    lacks_since: datetime
    """Since when it has lacked slices, or did until they stood."""
    yielded: bool = False
    """Whether it waits as its slices went to a gang that is before it in line."""
    ran: bool = False
    """Whether all of its slices stood once."""
    runs: bool = False
    """Whether some of its Jobs were on their slices, or had left them lately, when it was looked at last."""
    reason: Reason = Reason.AWAITING_GANG
    message: str = "It was not looked at yet."
    """Why it waits."""
    let_go: str = ""
    """Why slices of it were let go that stood, as a clause; empty: none was since it may have some."""
    back_at: datetime | None = None
    """When it is tried again; None: as soon as it can be."""
    tries: int = 0
    """How often its slices were held for too long in succession."""
    held_since: datetime | None = None
    """Since when slices of it stand while others do not; None: it is not so."""
    stuck_since: datetime | None = None
    """Since when others cannot be made meanwhile; None: they are being made, or that is not known now."""
    stuck_for: timedelta = timedelta(0)
    """How long they could not be made before, since `held_since`."""

    @property
    def waits(self) -> bool:
        return self.state is GangState.WAITS

    @property
    def forms(self) -> bool:
        return self.state is GangState.FORMS

    def held_until(self, limits: Limits) -> datetime | None:
        """Return when its slices that stand are let go, if nothing changes; None: none is held."""
        if self.held_since is None:
            return None
        at_most = self.held_since + limits.gang_hold_at_most
        if self.stuck_since is None:
            return at_most
        return min(at_most, self.stuck_since + (self.hold_for or limits.gang_hold_for) - self.stuck_for)

    def held_for(self, now: datetime) -> timedelta:
        """Return how long slices have been held while others could not be made."""
        return self.stuck_for + (max(now - self.stuck_since, timedelta(0)) if self.stuck_since else timedelta(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class InLine:
    """A gang that does not stand, in the line of its cluster."""

    workload: WorkloadUid
    namespace: str
    workload_name: str
    since: datetime
    """Its `Gang.since`."""
    chips: int
    """Those that are reserved for it: it may buy them, and had not when it was settled last, a minute ago."""
    lacks: tuple[str, ...] = ()
    """The capacity pools that could not provide slices of it."""
    holds_until: datetime | None = None
    """Until when single claims that came later wait behind it there, as slices of it stand; None: they do not."""


def gang_key(workload: WorkloadUid, name: str) -> GangKey:
    return GangKey(f"{workload}/{name}")


def reserved(line: Mapping[GangKey, InLine], namespace: str | None = None, but: WorkloadUid | None = None) -> int:
    """Return the chips that are reserved in a namespace, or in all of them, for gangs of other workloads than one."""
    return sum(each.chips for each in line.values() if each.workload != but and namespace in {None, each.namespace})
