"""Kueue's objects as the watches show them, and what follows from them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from relay.kueue.objects import AdmissionCheck, Check, Kept, Queued
from relay.kueue.reservations import Reservation, kind_of, reservation_of
from relay.objects import Aside, Bookmarked, Delivery, Listed, Lost, Saw, Unparseable
from tpu_slices.domain.model.slices import WorkloadUid

KueueEvent = Delivery[Aside, Kept]


class KueueBooks:
    """Objects by kind and identity: checks and flavors by name, Workloads by UID."""

    def __init__(self) -> None:
        self._kept: defaultdict[Aside, dict[str, Any]] = defaultdict(dict)
        self._listed: set[Aside] = set()
        """The kinds that were listed; that of checks also if it is not served."""

    def take(self, event: KueueEvent) -> None:
        """Record what a watch delivers. An object that cannot be parsed stays what it was."""
        kept = self._kept[event.kind]
        match event:
            case Bookmarked(kind=Aside.ADMISSION_CHECKS):
                self._listed.add(event.kind)
            case Listed(seen=listed):
                self._listed.add(event.kind)
                gone = kept.keys() - {each.identity for each in listed}
                self._kept[event.kind] = {name: each for name, each in kept.items() if name not in gone} | {
                    each.identity: each for each in listed if not isinstance(each, Unparseable)
                }
            case Saw(seen=seen) if not isinstance(seen, Unparseable):
                kept[seen.identity] = seen
            case Lost(identity=identity):
                kept.pop(identity, None)
            case _:
                pass

    @property
    def known(self) -> bool:
        """Whether all is known by which slices may be made."""
        return self.checks_known and (not self.ours or {Aside.QUEUED, Aside.FLAVORS} <= self._listed)

    @property
    def checks_known(self) -> bool:
        return Aside.ADMISSION_CHECKS in self._listed

    @property
    def checks(self) -> tuple[AdmissionCheck, ...]:
        return tuple(self._kept[Aside.ADMISSION_CHECKS].values())

    @property
    def ours(self) -> frozenset[str]:
        """The names of the checks that the relay answers."""
        return frozenset(self._kept[Aside.ADMISSION_CHECKS])

    def asked(self) -> list[Queued]:
        """Return the Workloads that list a check of ours."""
        return [each for each in self._kept[Aside.QUEUED].values() if self.of_ours(each)]

    def of_ours(self, queued: Queued) -> list[Check]:
        """Return the checks of ours that a Workload lists."""
        return [each for each in queued.checks if each.name in self._kept[Aside.ADMISSION_CHECKS]]

    def reservations(self) -> Mapping[WorkloadUid, Reservation]:
        """Return the quota by which slices may be made, by the workload that it is reserved for."""
        found: dict[WorkloadUid, Reservation] = {}
        for each in self.asked():
            reservation = reservation_of(each, self.ours, self._kept[Aside.FLAVORS])
            if reservation is not None and each.owner is not None and kind_of(each) is not None:
                found[WorkloadUid(each.owner.uid)] = reservation
        return found
