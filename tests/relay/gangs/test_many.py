"""A gang of very many slices costs as much for each pod as a small one."""

import pytest

from relay.objects import Leader, Workload
from tests.relay.gangs.objects import Gate, gang, gated, hosts, opened


def looked_at(count: int) -> int:
    """Return how many leaders are looked at when one of so many that are let go is seen without its gate."""
    gate = Gate()
    gate.see(gang(replicas=count), *(gated(index) for index in range(count)))
    for index in range(count):
        gate.see(*hosts(index))
    assert len(gate.opens()) == count
    cache, looked = gate.watched.queue.cache, list[str]()
    is_of = cache._is_of

    def counting(leader: Leader, workload: Workload) -> bool:
        looked.append(leader.pod)
        return is_of(leader, workload)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "_is_of", counting)
        gate.see(opened(0))
    return len(looked)


def test_what_a_pod_that_is_let_go_costs_does_not_grow_with_its_gang() -> None:
    assert looked_at(60) == looked_at(6)
