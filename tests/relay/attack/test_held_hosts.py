"""The relay of a cluster whose hosts are all held by pods that only run."""

from tests.bench.holding import Held


def test_pods_that_hold_chips_for_an_hour_cost_no_message_and_no_memory() -> None:
    held = Held(jobs=200, alone=20)
    held.pass_hour()
    sent, kept = held.sent.copy(), held.objects()
    held.pass_hour()
    assert {*(held.sent - sent)} == {"Heartbeat"}
    assert held.objects() < kept + 20, "less than one more for each Job whose leader ended"


def test_hosts_are_listed_for_jobs_whose_leaders_ended_alone() -> None:
    def lists(alone: int) -> int:
        held = Held(jobs=20, alone=alone)
        held.pass_hour()
        return held.api.lists

    assert lists(0) == 0
    assert lists(8) == 2 * lists(4) > 0
