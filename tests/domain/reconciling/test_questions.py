"""Questions about hosts, by what a whole decision asks."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import MINUTE, NOW, heard, settings, some_hosts
from tests.domain.cases import OURS, ready, seen
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import CloseHosts, OpenHosts

CORDONED = some_hosts(usable=3, closed=1, answered=NOW - 20 * MINUTE, vacant_since=NOW - 40 * MINUTE)


def test_hosts_that_are_given_up_and_closed_are_not_opened_by_the_same_decision() -> None:
    lost = replace(
        ready(hosts=CORDONED, hosts_awaited_since=NOW - 40 * MINUTE, demand_confirmed_at=NOW),
        phase=Phase.PROVISIONING,
        reason=Reason.HOSTS_LOST,
    )
    decision = decide(lost, seen(OURS), NOW, settings(), heard(slots={1: 0, 2: 1}))
    assert decision.record.attempt == 2
    assert [type(each) for each in decision.actions if isinstance(each, CloseHosts | OpenHosts)] == [CloseHosts]


def test_a_slice_whose_hosts_are_closed_is_looked_at_until_they_are_open() -> None:
    answered = replace(CORDONED, answered=NOW - MINUTE / 2)
    decision = decide(ready(hosts=answered), seen(OURS), NOW, settings(), heard())
    assert not [each for each in decision.actions if isinstance(each, OpenHosts)]
    assert decision.record.next_reconcile_at == NOW + MINUTE


def test_a_slice_whose_hosts_were_asked_to_be_opened_is_looked_at_as_the_question_may_be_lost() -> None:
    decision = decide(ready(hosts=CORDONED), seen(OURS), NOW, settings(), heard())
    assert decision.actions == (OpenHosts(1, NOW),)
    assert decision.record.next_reconcile_at == NOW + MINUTE
