"""Objects as large and as odd as the API server accepts from a tenant, and some that it should not accept."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from relay import translate
from relay.answers import answer
from relay.fact_queue import FactQueue
from relay.objects import Kind, Leader, Unparseable
from tests.builders import CLUSTER, an_owner
from tests.relay.attack.bed import Bed, name, names
from tests.relay.objects import Json, bound_pod, jobset, node, pod, replicated_job
from tests.relay.watched import START, Watched, counts, demand, nodes, none_of, occupants, read, states
from tpu_slices.domain.model.facts import Family, SlicesWanted, WorkloadState
from tpu_slices.domain.model.slices import Owner, WorkloadUid
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.messages import MOST_BYTES, encode_fact
from tpu_slices.wire.workloads import LABELS
from tpu_slices_simulator.relays import facts_of

THOUSANDS = {f"tenant.example/{number:05}": "x" * 63 for number in range(5_000)}
NAMES = ["a" * 63, "0", "a.b-c", "xn--80ak6aa92e", "a" * 240 + ".b"]


def unparseable(kind: Kind, identity: str) -> Unparseable[Kind]:
    return Unparseable(kind, identity, "KeyError: 'spec'")


def demand_facts(watched: Watched) -> list[SlicesWanted]:
    return [fact for fact in watched.due_facts() if isinstance(fact, SlicesWanted)]


@pytest.mark.parametrize("called", NAMES)
def test_a_jobset_with_thousands_of_labels_and_a_megabyte_of_notes_fits_into_one_message(
    watched: Watched, called: str
) -> None:
    notes = {"labels": THOUSANDS, "annotations": {"note": "\u0000\u202e" * 500_000}}
    parent = jobset(called, metadata=notes)
    parent["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"] = notes
    watched.see(parent, *(pod(number, jobset=called, labels=THOUSANDS) for number in range(2)))
    (fact,) = demand_facts(watched)
    assert fact.workload.owner.name == called
    assert len(encode_fact(fact).data) < MOST_BYTES


def test_of_a_pod_no_more_is_kept_than_can_be_reported() -> None:
    mounts = [{"persistentVolumeClaim": {"claimName": f"claim-{number}"}} for number in range(5_000)]
    leader = translate.leader(pod(0, labels=THOUSANDS, spec={"volumes": mounts}))
    assert leader is not None
    assert (len(leader.asks.labels), len(leader.volumes)) == (2 * LABELS, 50)


def test_keeping_fewer_labels_of_a_pod_does_not_change_what_is_reported() -> None:
    template = dict(list(THOUSANDS.items())[:LABELS])
    parent = jobset()
    parent["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"] = {"labels": template}
    reported = []
    for most in (translate.LABELS_KEPT, len(THOUSANDS)):
        leader = read(pod(0, labels=THOUSANDS))
        assert isinstance(leader, Leader)
        whole = tuple(sorted({**pod(0)["metadata"]["labels"], **THOUSANDS}.items()))
        queue = FactQueue(CLUSTER)
        none_of(queue, *set(Kind) - {Kind.JOBSETS, Kind.LEADERS})
        queue.listed(Kind.JOBSETS, [read(parent)], "1", START)
        kept = replace(leader, asks=replace(leader.asks, labels=whole[:most]))
        queue.listed(Kind.LEADERS, [kept], "1", START)
        reported.append(
            [fact.waiting for fact in facts_of(queue, queue.flush(START), START) if isinstance(fact, SlicesWanted)]
        )
    assert reported[0] == reported[1]
    assert len(reported[0][0][0].labels) > 0


def test_an_unparseable_jobset_is_not_gone(watched: Watched) -> None:
    watched.see(jobset(), pod(0), pod(1))
    watched.due_facts()
    watched.queue.saw(unparseable(Kind.JOBSETS, "u-1"), watched.now)
    watched.queue.listed(Kind.JOBSETS, [unparseable(Kind.JOBSETS, "u-1")], "50", watched.now)
    watched.pass_time(301)
    assert watched.due_facts() == []
    assert watched.listed() == ["u-1"]
    watched.see(jobset(version=60))
    watched.pass_time(301)
    assert demand(watched.due_facts()) == []
    assert [*watched.digests(Family.DEMAND)] == ["u-1"]


def test_a_jobset_that_was_never_parseable_is_live_until_it_is_gone(watched: Watched) -> None:
    watched.queue.listed(Kind.JOBSETS, [unparseable(Kind.JOBSETS, "u-9")], "50", watched.now)
    assert watched.due_facts() == []
    assert watched.digests(Family.WORKLOADS) == {"u-9": 0}
    watched.relist(Kind.JOBSETS)
    assert watched.due_facts() == []
    assert watched.listed() == []


def test_an_unparseable_leader_keeps_its_binding_and_has_no_demand(watched: Watched) -> None:
    watched.see(jobset(), *nodes(4), bound_pod(0, node(0)["metadata"]["name"]), pod(1))
    assert occupants(watched.due_facts()) == [["pod-0"]]
    for uid in ("pod-0", "pod-1"):
        watched.queue.saw(unparseable(Kind.LEADERS, uid), watched.now)
    watched.asked_for_hosts()
    facts = watched.due_facts()
    assert (occupants(facts), demand(facts)) == ([["pod-0"]], [])


def test_an_unparseable_host_is_counted_as_before(watched: Watched) -> None:
    watched.see(jobset(), *nodes(4))
    assert counts(watched.due_facts()) == [(4, 4)]
    watched.queue.saw(unparseable(Kind.HOSTS, node(0)["metadata"]["name"]), watched.now)
    watched.asked_for_hosts()
    assert counts(watched.due_facts()) == [(4, 4)]


def test_unparseable_templates_do_not_unbind_the_leader_on_a_legacy_pool(watched: Watched) -> None:
    """Legacy pools are found by the names of the JobSet's Jobs."""
    legacy_labels = {
        "google.com/tpu-slice-id": None,
        "google.com/tpu-slice-attempt": None,
        "cloud.google.com/gke-nodepool": "tpu-provisioner-1",
        "google.com/tpu-provisioner-parent-kind": "job",
        "google.com/tpu-provisioner-parent-name": "llama-workers-0",
        "google.com/tpu-provisioner-parent-namespace": "research",
        "google.com/tpu-provisioner-jobset-name": "llama",
        "google.com/tpu-provisioner-jobset-namespace": "research",
    }
    hosts = nodes(4, labels=legacy_labels)
    watched.see(jobset(), *hosts, bound_pod(0, hosts[0]["metadata"]["name"]))
    assert occupants(watched.due_facts()) == [["pod-0"]]
    watched.see(jobset(version=11, spec={"replicatedJobs": [replicated_job(tolerations="all")]}))
    watched.asked_for_hosts()
    assert occupants(watched.due_facts()) == [["pod-0"]]


ODD: list[Any] = [
    {"spec": None},
    {"status": {"conditions": [{"status": "True"}]}},
    {"status": {"conditions": "none"}},
    {"status": 7},
]


@pytest.mark.parametrize("odd", ODD)
def test_a_question_about_an_unparseable_jobset_is_a_permanent_error(odd: Json) -> None:
    class Api:
        def workload(self, _: Owner) -> Json:
            return {**jobset(), **odd}

        def post(self, event: Any) -> None:
            raise AssertionError(event)

        renew = post

    with pytest.raises(Permanent, match="cannot be parsed"):
        answer(an_owner(uid=WorkloadUid("u-1")), Api())


def test_an_end_is_reported_although_another_watch_is_silent(watched: Watched) -> None:
    """Facts do not pile up while a watch is silent."""
    watched.see(jobset(), jobset("gemma", uid="u-2"))
    watched.due_facts()
    watched.now += timedelta(hours=1)
    watched.queue.bookmarked(Kind.JOBSETS, "90", watched.now)
    watched.lose(jobset())
    assert states(watched.due_facts()) == [("u-1", WorkloadState.DELETED)]


@pytest.mark.emulators
@pytest.mark.enable_socket
def test_an_unparseable_object_on_the_wire_is_kept_until_it_is_deleted(bed: Bed) -> None:
    bed.create(0, 1)
    with bed.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
        odd = bed.raw(1).replace('"status":{', '"status":7,"was":{')
        bed.press("say-to-watches", text=f'{{"type":"MODIFIED","object":{odd}}}\n')
        recorder.until(lambda: isinstance(recorder.present[name(1)], Unparseable))
        bed.press("say-to-watches", text=f'{{"type":"DELETED","object":{odd}}}\n')
        recorder.until(lambda: sorted(recorder.present) == names(0))
    assert recorder.failures == []
