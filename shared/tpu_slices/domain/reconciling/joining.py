"""When the hosts of a self-managed cluster need a bootstrap token to join it, and when they need it no more. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.joining import TOKEN_LIVES, TOKEN_REUSED, JoinAsked, JoinToken
from tpu_slices.domain.model.observations import Busy, Running
from tpu_slices.domain.planning.joining import kubeadm_of
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.decisions import Action, AskJoin, EndJoin
from tpu_slices.domain.records.slices import SliceRecord

ASKED_AGAIN_AFTER = TOKEN_LIVES - TOKEN_REUSED


@dataclass(frozen=True, slots=True)
class Joining:
    """What is done about a slice's hosts that are missing."""

    asked: JoinAsked | None
    actions: tuple[Action, ...] = ()
    until: datetime | None = None
    """When it may change although nothing is reported."""


def joining(case: Situation) -> Joining:
    """Return what is asked of the relay, by the attempt that a token was asked for last.

    | its attempt            | the hosts of the current attempt                          | then                     |
    |------------------------|-----------------------------------------------------------|--------------------------|
    | none, or the current   | are missing, and join by kubeadm                          | ask, and again before    |
    |                        |                                                           | the token expires        |
    | the current            | are all usable, or will not join                          | end                      |
    | another one            | -                                                         | end; and as with none    |

    A host that was made anew is missing, too: its Node may still be there, and it has to join again.
    """
    asked = case.record.join_asked
    if asked is not None and asked.attempt != case.record.attempt:
        now = _asked(case, None)
        return Joining(now.asked or asked, (EndJoin(asked.attempt), *now.actions), now.until)
    return _asked(case, asked)


def _asked(case: Situation, asked: JoinAsked | None) -> Joining:
    if not awaits_hosts(case.record, case.settings):
        return Joining(asked, (EndJoin(asked.attempt),) if asked else ())
    if not isinstance(case.seen.pool, Running | Busy) or case.unfilled:
        return Joining(asked)
    at = case.now if asked is None else _again_at(asked, case.limits.requeue_after)
    if at > case.now:
        return Joining(asked, until=at)
    anew = JoinAsked(attempt=case.record.attempt, at=case.now)
    return Joining(anew, (AskJoin(anew.attempt, anew.at),), _again_at(anew, case.limits.requeue_after))


def _again_at(asked: JoinAsked, after_failure: timedelta) -> datetime:
    return asked.at + (after_failure if asked.failure else ASKED_AGAIN_AFTER)


def awaits_hosts(record: SliceRecord, settings: ClusterSettings) -> bool:
    """Return whether hosts of the current attempt are missing that join with a token."""
    spec, ordered = record.made_as, record.current.create_requested_at is not None
    if record.goes or not ordered or spec is None or record.current.hosts.usable >= spec.hosts:
        return False
    return kubeadm_of(spec, record.pinned_settings or settings.pools) is not None


def awaits(record: SliceRecord, token: JoinToken, now: datetime, settings: ClusterSettings) -> bool:
    """Return whether the hosts of a slice still wait for this token: it may come late, twice, or forged."""
    asked = record.join_asked
    current = asked is not None and asked.attempt == token.attempt == record.attempt
    return current and now < token.expires_at and awaits_hosts(record, settings)
