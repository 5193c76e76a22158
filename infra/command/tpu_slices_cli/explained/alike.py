"""Several slices of one workload: what they have in common is said once, then what differs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.reconcile import Explained
from tpu_slices_cli import words

MOST_NAMED = 50
"""The most slices of one state that are named."""
_NUMBERS = re.compile(r"\d+")


def several(explained: Sequence[Explained], now: datetime) -> Iterator[str]:
    """Yield a paragraph for each state that some of these slices have in common, and how to see all of each slice."""
    groups: dict[tuple[str, ...], list[Explained]] = {}
    for each in explained:
        groups.setdefault((each.record.phase, *_NUMBERS.sub("0", "\n".join(_texts(each))).split("\n")), []).append(each)
    for alike in groups.values():
        yield from _together(alike, now)
        yield ""
    yield "`slices explain SLICE` has all of one slice, its history too; --full that of each."


def _together(alike: Sequence[Explained], now: datetime) -> Iterator[str]:
    first = alike[0]
    shape, *said = _texts(first)
    count = f"{len(alike):,} slices, each" if len(alike) > 1 else "1 slice:"
    yield f"{count} {shape}"
    for text in said:
        yield f"  {text}"
    if any(_texts(each) != _texts(first) for each in alike):
        yield f"  These are the numbers and times of {first.record.job.job_name}; those of the others differ."
    rows = [_row(each, now) for each in alike[:MOST_NAMED]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  " + "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
    if len(alike) > MOST_NAMED:
        yield f"  and {len(alike) - MOST_NAMED:,} more"


def _texts(each: Explained) -> tuple[str, ...]:
    """Return the shape of a slice, its state and what is done next, without the names that are its own."""
    record, settings = each.record, each.settings
    state = f"{record.phase}, {words.reason(record)}: {words.message(record, settings)}"
    done = [f"Next: {words.ordered(action, record, settings.vendor)}" for action in each.decision.actions]
    return tuple(_nameless(text, record) for text in (words.shape(record), state, *done))


def _nameless(text: str, record: SliceRecord) -> str:
    return text.replace(record.maker, "SLICE").replace(record.name, "SLICE").replace(record.job.job_name, "JOB")


def _row(each: Explained, now: datetime) -> tuple[str, ...]:
    record = each.record
    others = {f"{user.owner.namespace}/{user.job}" for user in record.current.hosts.occupants}
    others -= {f"{record.owner.namespace}/{record.job.job_name}"}
    retry_at = record.claim.retry_at
    extras = (
        f"next attempt {words.moment(retry_at, now)}" if retry_at is not None and retry_at > now else "",
        f"used by {', '.join(sorted(others))}" if others else "",
        record.note,
    )
    return (
        record.job.job_name,
        record.name,
        f"{words.hosts(record)} hosts",
        f"for {words.span(now - record.since)}",
        "; ".join((f"pool {words.seen(each.seen.pool)}", *filter(None, extras))),
    )
