"""Slices that lived through something, as records."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from tests.builders import NOW, a_job, a_record, a_spec
from tests.world import World
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import HISTORY, Phase, SliceRecord
from tpu_slices.domain.model.slices import WorkloadUid, slice_id

Turn = tuple[int, Phase, Reason, str]
"""Minutes before NOW, and what the slice became."""

HOSTILE = "</script><script>document.title='broken in'</script><img src=x onerror=\"document.title='broken in'\">"
HOSTILE_NAME = "<b>&amp;</b>'\"--><h1>"

WANTED = (Phase.QUEUED, Reason.OPERATION_LIMIT, "The cluster runs as many node pool operations as it takes.")
STARTED = (Phase.PROVISIONING, Reason.CREATION_STARTED, "Creating node pool: 4 x ct5lp-hightpu-4t in us-central2-b.")
CREATING = (Phase.PROVISIONING, Reason.CREATING, "GKE is creating 4 hosts (16 chips) in us-central2-b.")
JOINING = (Phase.PROVISIONING, Reason.HOSTS_JOINING, "2 of 4 hosts are ready and offer their chips.")
READY = (Phase.READY, Reason.READY, "All 4 hosts are ready and offer their chips.")
LOST = (Phase.PROVISIONING, Reason.HOSTS_LOST, "3 of 4 hosts are ready and offer their chips.")
UNUSED = (Phase.READY, Reason.LEADER_STILL_WAITING, "Ready, and yet the leader pod cannot be scheduled.")
STOCKOUT = (Phase.WAITING, Reason.STOCKOUT, "us-central2-b has no tpu-v5-lite-podslice 4x4 to give; tried again soon.")
RELEASING = (Phase.RELEASING, Reason.DELETION_STARTED, "Deleting: the JobSet completed.")
GONE = (Phase.GONE, Reason.RELEASED, "Released: the JobSet completed.")
REFUSED = (Phase.REFUSED, Reason.NO_CHIPS_LEFT, "The namespace research holds 64 of 64 chips; tried again by itself.")
BLOCKED = (Phase.BLOCKED, Reason.CONFIGURATION, "The service account does not exist: create it.")


def lived(jobset: str, index: int, turns: Iterable[Turn], **changes: str) -> SliceRecord:
    job = a_job(**{"name": jobset, "uid": WorkloadUid(f"uid-{jobset}"), "job_index": index, **changes})
    turns = tuple(turns)
    born = NOW - timedelta(minutes=turns[0][0])
    record = a_record(job=job, id=slice_id(job), spec=a_spec(), created_at=born, since=born, message="Heard of.")
    for ago, phase, reason, message in turns:
        record = record.transitioned(NOW - timedelta(minutes=ago), phase, reason, message)
    return record


def served(jobset: str, index: int, ago: int) -> SliceRecord:
    turns = (ago, *WANTED), (ago - 3, *STARTED), (ago - 4, *CREATING), (ago - 11, *JOINING), (ago - 14, *READY)
    return lived(jobset, index, turns)


def an_afternoon() -> list[SliceRecord]:
    """Give one slice at least of each phase, within six hours."""
    return [
        *(served("llama", index, 300 + 5 * index) for index in range(3)),
        lived("llama", 3, [(300, *STARTED), (290, *READY), (150, *LOST), (120, *READY)]),
        lived("gemma", 0, [(240, *STARTED), (200, *STOCKOUT), (140, *STARTED), (90, *STOCKOUT), (30, *STARTED)]),
        lived("gemma", 1, [(240, *STARTED), (228, *READY), (80, *RELEASING), (72, *GONE)]),
        lived("gemma", 2, [(235, *WANTED), (120, *STARTED), (110, *UNUSED), (20, *RELEASING)]),
        lived("mixtral", 0, [(50, *REFUSED)], namespace="vision"),
        lived("mixtral", 1, [(45, *BLOCKED)], namespace="vision"),
        flapping("bert", 0),
    ]


def flapping(jobset: str, index: int) -> SliceRecord:
    """Give a slice with more changes than a record keeps."""
    turns = [(180 - 6 * number, *(LOST if number % 2 else READY)) for number in range(HISTORY + 7)]
    return lived(jobset, index, turns)


def hostile() -> list[SliceRecord]:
    """Give a slice whose every text is an attack."""
    texts = (
        (200, Phase.QUEUED, Reason.WANTED, HOSTILE),
        (100, Phase.READY, Reason.READY, f"{HOSTILE_NAME} \u202e{HOSTILE}"),
    )
    return [lived(HOSTILE_NAME, 0, texts, namespace=HOSTILE, replicated_job="</title>")]


def unbroken() -> list[SliceRecord]:
    """Give a slice of the longest names there can be, whose sentence has no place to break."""
    message = f"projects/{'p' * 300} is not allowed."
    turns = [(5_000_000, *WANTED), (200, Phase.REFUSED, Reason.NOT_ALLOWED, message), (100, *READY)]
    return [lived("x" * 63, 0, turns, namespace="y" * 63, replicated_job="z" * 63)]


def world_of(records: Iterable[SliceRecord]) -> World:
    world = World()
    for record in records:
        world.store.put(record)
    return world
