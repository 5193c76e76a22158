"""Injected faults: which one a call meets, and how they wear off."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

CAPACITIES = ("on-demand", "spot", "flex-start", "reservation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Affects the next `times` calls of `method` (`*`: any) that it means; None: until cleared, or `until`.

    `zone`: where alone it is. `capacity`: of which alone it is, one of CAPACITIES. `at_least`: of how many hosts what
    it affects has to be. `available`: the zones that a stockout says have stock. `seconds`: how much longer something
    takes. `share`: the fraction of the calls that is affected, evenly distributed; `met`: how many calls it has met.
    """

    kind: Any
    method: str = "*"
    zone: str | None = None
    capacity: str | None = None
    at_least: int = 0
    available: tuple[str, ...] = ()
    times: int | None = 1
    until: float | None = None
    seconds: float = 10.0
    share: float = 1.0
    met: int = 0

    def is_of(self, kinds: Collection[Any], method: str) -> bool:
        """Return whether it is of one of these kinds, and affects calls of this method."""
        return self.kind in kinds and self.method in {"*", method}

    def takes(self, capacity: str, hosts: int) -> bool:
        """Return whether it affects so many hosts of a capacity."""
        return self.capacity in {None, capacity} and hosts >= self.at_least


F = TypeVar("F", bound=Fault)


def elsewhere(machine: str, zone: str, available: Sequence[str]) -> str:
    """Return Compute Engine's words for a stockout in one zone while others have stock: kubernetes/k8s.io#9834."""
    return (
        f"A {machine} VM instance is currently unavailable in the {zone} zone. Consider trying your request in the "
        f"{', '.join(available)} zone(s), which currently has capacity to accommodate your request. Alternatively, you "
        "can try your request again with a different VM hardware configuration or at a later time."
    )


def take(faults: Sequence[F], meant: Callable[[F], bool]) -> tuple[tuple[F, ...], F | None]:
    """Return the faults after this call, and the first that affects it."""
    after: list[F] = []
    for index, fault in enumerate(faults):
        if not meant(fault):
            after.append(fault)
            continue
        met = replace(fault, met=fault.met + 1)
        if int(met.met * met.share) > int(fault.met * fault.share):
            return (*after, *worn(met), *faults[index + 1 :]), fault
        after.append(met)
    return tuple(after), None


def worn(fault: F) -> tuple[F, ...]:
    """Return the fault after one use; nothing if that was its last."""
    if fault.times is None:
        return (fault,)
    return (replace(fault, times=fault.times - 1),) if fault.times > 1 else ()


def lasting(faults: tuple[F, ...], now: float) -> tuple[F, ...]:
    """Return the faults that have not expired."""
    return tuple(fault for fault in faults if fault.until is None or now < fault.until)
