"""What the state keeps of reservations and of what can be booked. Times are in seconds since 1970, hosts are VMs."""

from dataclasses import dataclass

from tpu_standins.compute.paths import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class SubBlock:
    """A part of a block [py-gce ReservationSubBlock]. `others`: hosts that others than our groups use."""

    name: str
    count: int
    others: int = 0
    degraded: int = 0

    @property
    def open(self) -> int:
        """Return how many hosts our groups could use, if they used none."""
        return max(0, self.count - self.others - self.degraded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block [py-gce ReservationBlock]."""

    name: str
    parts: tuple[SubBlock, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """A reservation. One without blocks has its hosts in one part that nobody can read.

    `status`: one of py-gce Reservation.Status. `deletes`: when Compute deletes it; None: never. `made_by`: the future
    reservation that made it.
    """

    path: Resource
    machine_type: str
    created: float
    blocks: tuple[Block, ...] = ()
    part: SubBlock | None = None
    status: str = "READY"
    deletes: float | None = None
    made_by: str = ""

    @property
    def parts(self) -> tuple[SubBlock, ...]:
        """Return where its hosts are, in the order in which our groups take them: the order is ours."""
        whole = () if self.part is None else (self.part,)
        return (*whole, *(part for block in self.blocks for part in block.parts))

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def others(self) -> int:
        return sum(part.others for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """A future reservation: it makes `reservation` at `starts`. At `ends` Compute deletes that, and its VMs.

    `procurement`: what its status is before `starts` [py-gce FutureReservationStatus.ProcurementStatus]; one that is
    not APPROVED or COMMITTED makes nothing. `prefix`: only this of the name is known before. `done`: it has made it.
    """

    path: Resource
    machine_type: str
    count: int
    reservation: str
    starts: float
    ends: float
    created: float
    procurement: str = "COMMITTED"
    mode: str = "CALENDAR"
    prefix: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """So many chips of a family of machines can be booked in a zone, from `starts` on."""

    zone: str
    vm_family: str
    chips: int
    starts: float
