"""Hypothesis strategies for every value that a fact or a record may have, from its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NewType, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from tests.builders import a_job
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.slices import (
    LAST_ATTEMPT,
    ClaimId,
    ClusterId,
    Pairs,
    SliceId,
    WorkloadUid,
    claim_id,
    slice_id,
)
from tpu_slices.domain.records.slices import Desire, SliceRecord

names = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9._]{0,50}[A-Za-z0-9])?", fullmatch=True)
claim_ids = st.builds(a_job, name=names, replicated_job=names, job_index=st.integers(0, 999)).map(claim_id)

LEAVES: Mapping[Any, st.SearchStrategy[Any]] = {
    datetime: st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2900, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - the zone is beside
    Topology: st.sampled_from([Topology.parse("4x4"), Topology.parse("2x2x4")]),
    Pairs: st.dictionaries(st.text(), st.text(), max_size=2).map(lambda labels: tuple(sorted(labels.items()))),
    int: st.integers(0, 1_000),
    timedelta: st.integers(1, 604_800).map(lambda seconds: timedelta(seconds=seconds)),
    str: st.text(max_size=60),
    ClusterId: st.from_regex(r"[a-z]([-a-z0-9]{0,50}[a-z0-9])?", fullmatch=True),
    ClaimId: claim_ids,
    SliceId: st.builds(slice_id, claim_ids, st.integers(0, LAST_ATTEMPT)),
    WorkloadUid: names,
}
FIELDS: Mapping[str, st.SearchStrategy[Any]] = {
    "Owner.namespace": names,
    "Slot.namespace": names,
    "InLine.namespace": names,
    "Owner.name": names,
    "Occupant.pod_uid": names,
    "RunsOn.pod_uid": names,
    "Listed.after": st.none() | names,
    "Listed.up_to": st.none() | names,
    "Listed.digests": st.dictionaries(names, st.integers(0, 2**48 - 1), max_size=2),
    "Listed.part": st.integers(0, 39),
    "Listed.parts": st.integers(1, 40),
    "JoinToken.token": st.from_regex(r"[a-z0-9]{6}\.[a-z0-9]{16}", fullmatch=True),
    "JoinToken.ca_hashes": st.lists(st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True), min_size=1, max_size=2).map(
        tuple
    ),
    "JobPods.pod_uid": names,
    "Attempt.number": st.integers(1, LAST_ATTEMPT),
    "SliceSpec.hosts": st.integers(1, 1_000),
    "SliceSpec.chips_per_host": st.integers(1, 8),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for every value that a field of this type may have."""
    return _values_of(hint)


@cache
def _values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for every value that a field of this type may have."""
    if hint in LEAVES:
        return LEAVES[hint]
    if isinstance(hint, NewType):
        return values_of(hint.__supertype__)
    if isinstance(hint, type) and is_dataclass(hint):
        hints = get_type_hints(hint)
        made = st.builds(hint, **{name: _of_field(hint, name, inner) for name, inner in hints.items()})
        return st.builds(_named, made, st.booleans()) if hint is SliceRecord else made
    inner = [values_of(argument) for argument in get_args(hint) if argument is not ...]
    origin = get_origin(hint)
    if origin is tuple:
        return st.lists(*inner, max_size=2).map(tuple)
    if origin is Mapping:
        return st.dictionaries(*inner, max_size=2)
    return st.one_of(inner) if inner else st.from_type(hint)


def _named(record: SliceRecord, unclaimed: bool) -> SliceRecord:
    """Return a slice that its claim has, or that no claim has."""
    if not unclaimed:
        return replace(record, claimed_by=record.last_claim)
    return replace(record, claimed_by=None, let_go=record.let_go or "it failed", desire=Desire.ABSENT)


def _of_field(kind: type[Any], name: str, hint: Any) -> st.SearchStrategy[Any]:
    own = FIELDS.get(f"{kind.__name__}.{name}")
    return values_of(hint) if own is None else own
