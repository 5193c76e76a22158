"""Slice records with a history."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from tests.builders import NOW, a_job, a_record, a_spec, an_occupant, some_hosts
from tests.world import World
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.records.hosts import NO_HOSTS
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.transitions import HISTORY

PastTransition = tuple[int, Reason, str]
"""Minutes before NOW; reason and message from then on."""

HOSTILE = "</script><script>document.title='broken in'</script><img src=x onerror=\"document.title='broken in'\">"
HOSTILE_NAME = "<b>&amp;</b>'\"--><h1>"

QUEUED = (Reason.OPERATION_LIMIT, "Waiting for a node pool operation to end.")
STARTED = (Reason.CREATION_STARTED, "Creating node pool: 4 x ct6e-standard-4t in us-central2-b.")
CREATING = (Reason.CREATING, "GKE is creating 4 hosts (16 chips) in us-central2-b.")
JOINING = (Reason.HOSTS_JOINING, "2 of 4 hosts are ready and offer their chips.")
READY = (Reason.READY, "All 4 hosts are ready and offer their chips.")
LOST = (Reason.HOSTS_LOST, "3 of 4 hosts are ready and offer their chips.")
UNUSED = (Reason.LEADER_STILL_WAITING, "All hosts are ready, but the leader pod is not scheduled.")
STOCKOUT = (Reason.STOCKOUT, "us-central2-b is out of tpu-v6e-slice 4x4.")
RELEASING = (Reason.DELETION_STARTED, "Deleting the node pool: the JobSet completed.")
GONE = (Reason.RELEASED, "Released: the JobSet completed.")
REFUSED = (Reason.CHIP_LIMIT_REACHED, "The namespace research holds 64 of 64 chips; it is retried.")
BLOCKED = (Reason.INVALID_CONFIGURATION, "The service account does not exist: create it.")

_HOSTS = {
    Reason.HOSTS_JOINING: some_hosts(usable=2),
    Reason.READY: some_hosts(occupants=(an_occupant(),)),
    Reason.HOSTS_LOST: some_hosts(usable=3, joined=3),
    Reason.LEADER_STILL_WAITING: some_hosts(),
    Reason.DELETION_STARTED: some_hosts(),
}
"""The hosts of a slice with this reason; none with another one."""


def with_history(jobset: str, index: int, transitions: Iterable[PastTransition], **changes: str) -> SliceRecord:
    job = a_job(**{"name": jobset, "uid": WorkloadUid(f"uid-{jobset}"), "job_index": index, **changes})
    transitions = tuple(transitions)
    born = NOW - timedelta(minutes=transitions[0][0])
    record = a_record(job=job, spec=a_spec(), created_at=born, since=born, message="Heard of.")
    for ago, reason, message in transitions:
        hosts = _HOSTS.get(reason, NO_HOSTS)
        record = record.with_current(create_requested_at=born, hosts=hosts).transitioned(
            NOW - timedelta(minutes=ago), reason, message
        )
    return record


def served(jobset: str, index: int, ago: int) -> SliceRecord:
    transitions = (ago, *QUEUED), (ago - 3, *STARTED), (ago - 4, *CREATING), (ago - 11, *JOINING), (ago - 14, *READY)
    return with_history(jobset, index, transitions)


def an_afternoon() -> list[SliceRecord]:
    """Return slices of every phase, within six hours."""
    return [
        *(served("llama", index, 300 + 5 * index) for index in range(3)),
        with_history("llama", 3, [(300, *STARTED), (290, *READY), (150, *LOST), (120, *READY)]),
        with_history("gemma", 0, [(240, *STARTED), (200, *STOCKOUT), (140, *STARTED), (90, *STOCKOUT), (30, *STARTED)]),
        with_history("gemma", 1, [(240, *STARTED), (228, *READY), (80, *RELEASING), (72, *GONE)]),
        with_history("gemma", 2, [(235, *QUEUED), (120, *STARTED), (110, *UNUSED), (20, *RELEASING)]),
        with_history("mixtral", 0, [(50, *REFUSED)], namespace="vision"),
        with_history("mixtral", 1, [(45, *BLOCKED)], namespace="vision"),
        flapping("bert", 0),
    ]


def flapping(jobset: str, index: int) -> SliceRecord:
    """Return a slice with more transitions than a record keeps."""
    transitions = [(180 - 6 * number, *(LOST if number % 2 else READY)) for number in range(HISTORY + 7)]
    return with_history(jobset, index, transitions)


def hostile() -> list[SliceRecord]:
    """Return a slice whose every text is an attack."""
    texts = (
        (200, Reason.REQUESTED, HOSTILE),
        (100, Reason.READY, f"{HOSTILE_NAME} \u202e{HOSTILE}"),
    )
    return [with_history(HOSTILE_NAME, 0, texts, namespace=HOSTILE, replicated_job="</title>")]


def unbroken() -> list[SliceRecord]:
    """Return a slice with the longest names there can be and a message without a place to break the line."""
    message = f"projects/{'p' * 300} is not allowed."
    transitions = [(5_000_000, *QUEUED), (200, Reason.NOT_ALLOWED, message), (100, *READY)]
    return [with_history("x" * 63, 0, transitions, namespace="y" * 63, replicated_job="z" * 63)]


def world_of(records: Iterable[SliceRecord]) -> World:
    world = World()
    for record in records:
        world.store.put(record)
    return world
