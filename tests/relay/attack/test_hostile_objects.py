"""Objects that a tenant made as large and as odd as the API server lets through, and some that it should not have."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from relay import translate
from relay.fact_queue import FactQueue
from relay.inbox import answer
from relay.objects import JobSetName, Kind, Leader, Unparseable
from tests.builders import CLUSTER, an_owner
from tests.relay.attack.bed import Bed, name, names
from tests.relay.objects import Json, bound_pod, jobset, node, pod, replicated_job
from tests.relay.watched import START, Watched, bindings, counts, nodes, read, states, wants
from tpu_slices.domain.model.facts import Heartbeat, SlicesWanted, WorkloadState
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.messages import MOST_BYTES, encode_fact
from tpu_slices.wire.workloads import LABELS

THOUSANDS = {f"tenant.example/{number:05}": "x" * 63 for number in range(5_000)}
NAMES = ["a" * 63, "0", "a.b-c", "xn--80ak6aa92e", "a" * 240 + ".b"]


def unparseable(kind: Kind, identity: str) -> Unparseable:
    return Unparseable(kind, identity, "KeyError: 'spec'")


def all_said(watched: Watched) -> list[SlicesWanted]:
    return [fact for fact in watched.said() if isinstance(fact, SlicesWanted)]


def heartbeat(queue: FactQueue, watched: Watched) -> Heartbeat:
    beat = queue.everything(watched.now)
    assert beat is not None
    return beat


@pytest.mark.parametrize("called", NAMES)
def test_a_jobset_with_thousands_of_labels_and_a_megabyte_of_notes_is_told_in_one_message(
    watched: Watched, called: str
) -> None:
    notes = {"labels": THOUSANDS, "annotations": {"note": "\u0000\u202e" * 500_000}}
    parent = jobset(called, metadata=notes)
    parent["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"] = notes
    watched.see(parent, *(pod(number, jobset=called, labels=THOUSANDS) for number in range(2)))
    (want,) = all_said(watched)
    assert want.workload.owner.name == called
    assert len(encode_fact(want).data) < MOST_BYTES


def test_of_a_pod_no_more_is_kept_than_can_be_told() -> None:
    mounts = [{"persistentVolumeClaim": {"claimName": f"claim-{number}"}} for number in range(5_000)]
    leader = translate.leader(pod(0, labels=THOUSANDS, spec={"volumes": mounts}))
    assert leader is not None
    assert (len(leader.asks.labels), len(leader.claims)) == (2 * LABELS, 50)


def test_what_is_told_of_a_pods_labels_is_the_same_as_if_all_were_kept() -> None:
    template = dict(list(THOUSANDS.items())[:LABELS])
    parent = jobset()
    parent["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"] = {"labels": template}
    announced_state = []
    for most in (translate.LABELS_KEPT, len(THOUSANDS)):
        leader = read(pod(0, labels=THOUSANDS))
        assert isinstance(leader, Leader)
        whole = tuple(sorted({**pod(0)["metadata"]["labels"], **THOUSANDS}.items()))
        queue = FactQueue(CLUSTER)
        queue.listed(Kind.HOSTS, [], "1", START)
        queue.listed(Kind.JOBSETS, [read(parent)], "1", START)
        kept = replace(leader, asks=replace(leader.asks, labels=whole[:most]))
        queue.listed(Kind.LEADERS, [kept], "1", START)
        announced_state.append([fact.waiting for fact in queue.flush(START) if isinstance(fact, SlicesWanted)])
    assert announced_state[0] == announced_state[1]
    assert len(announced_state[0][0][0].labels) > 0


def test_a_jobset_that_cannot_be_understood_is_not_gone(watched: Watched) -> None:
    watched.see(jobset(), pod(0), pod(1))
    watched.said()
    watched.queue.saw(unparseable(Kind.JOBSETS, "u-1"), watched.now)
    watched.queue.listed(Kind.JOBSETS, [unparseable(Kind.JOBSETS, "u-1")], "50", watched.now)
    watched.pass_time(301)
    assert watched.said() == []
    assert heartbeat(watched.queue, watched).uids == ("u-1",)
    watched.see(jobset(version=60))
    watched.pass_time(301)
    assert wants(watched.said()) == [[0, 1]]


def test_a_jobset_that_never_could_be_understood_lives_until_it_goes(watched: Watched) -> None:
    watched.queue.listed(Kind.JOBSETS, [unparseable(Kind.JOBSETS, "u-9")], "50", watched.now)
    assert heartbeat(watched.queue, watched).uids == ("u-9",)
    watched.relist(Kind.JOBSETS)
    assert heartbeat(watched.queue, watched).uids == ()
    assert watched.said() == []


def test_a_leader_that_cannot_be_understood_keeps_its_berth_and_asks_for_nothing(watched: Watched) -> None:
    watched.see(jobset(), *nodes(4), bound_pod(0, node(0)["metadata"]["name"]), pod(1))
    assert bindings(watched.said()) == [("pod-0", True)]
    for uid in ("pod-0", "pod-1"):
        watched.queue.saw(unparseable(Kind.LEADERS, uid), watched.now)
    watched.pass_time(301)
    facts = watched.said()
    assert (bindings(facts), wants(facts)) == ([("pod-0", True)], [])


def test_a_host_that_cannot_be_understood_is_counted_as_it_was(watched: Watched) -> None:
    watched.see(jobset(), *nodes(4))
    assert counts(watched.said()) == [(4, 4)]
    watched.queue.saw(unparseable(Kind.HOSTS, node(0)["metadata"]["name"]), watched.now)
    watched.pass_time(301)
    assert counts(watched.said()) == [(4, 4)]


def test_templates_that_cannot_be_read_do_not_unbind_who_is_on_an_inherited_pool(watched: Watched) -> None:
    """The pools that TPU Provisioner made are found by the names of the JobSet's Jobs."""
    theirs = {
        "google.com/tpu-slice-id": None,
        "google.com/tpu-slice-attempt": None,
        "cloud.google.com/gke-nodepool": "tpu-provisioner-1",
        "google.com/tpu-provisioner-parent-kind": "job",
        "google.com/tpu-provisioner-parent-name": "llama-workers-0",
        "google.com/tpu-provisioner-parent-namespace": "research",
        "google.com/tpu-provisioner-jobset-name": "llama",
        "google.com/tpu-provisioner-jobset-namespace": "research",
    }
    hosts = nodes(4, labels=theirs)
    watched.see(jobset(), *hosts, bound_pod(0, hosts[0]["metadata"]["name"]))
    assert bindings(watched.said()) == [("pod-0", True)]
    broken = replicated_job()
    del broken["template"]["spec"]["template"]["spec"]["containers"]
    broken["template"]["spec"]["template"]["spec"]["tolerations"] = "all"
    watched.see(jobset(version=11, spec={"replicatedJobs": [replicated_job(tolerations="all")]}))
    watched.pass_time(301)
    assert bindings(watched.said()) == [("pod-0", True)]


ODD: list[Any] = [
    {"spec": None},
    {"status": {"conditions": [{"status": "True"}]}},
    {"status": {"conditions": "none"}},
    {"status": 7},
]


@pytest.mark.parametrize("odd", ODD)
def test_a_question_about_a_jobset_that_cannot_be_understood_gets_no_answer(odd: Json) -> None:
    class Api:
        def jobset(self, _: JobSetName) -> Json:
            return {**jobset(), **odd}

        def post(self, event: Any) -> None:
            raise AssertionError(event)

        renew = post

    with pytest.raises(Permanent, match="cannot be understood"):
        answer(an_owner(uid=WorkloadUid("u-1")), Api())


def test_an_end_is_told_though_another_watch_is_silent(watched: Watched) -> None:
    """And what is to be told does not pile up while the relay is blind."""
    watched.see(jobset(), jobset("gemma", uid="u-2"))
    watched.said()
    watched.now += timedelta(hours=1)
    watched.queue.bookmarked(Kind.JOBSETS, "90", watched.now)
    watched.lose(jobset())
    assert states(watched.said()) == [("u-1", WorkloadState.DELETED)]


@pytest.mark.emulators
@pytest.mark.enable_socket
@pytest.mark.timeout(60)
def test_an_odd_object_on_the_wire_is_there_until_it_goes(bed: Bed) -> None:
    bed.create(0, 1)
    with bed.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
        odd = bed.raw(1).replace('"status":{', '"status":7,"was":{')
        bed.press("say-to-watches", text=f'{{"type":"MODIFIED","object":{odd}}}\n')
        recorder.until(lambda: isinstance(recorder.present[name(1)], Unparseable))
        bed.press("say-to-watches", text=f'{{"type":"DELETED","object":{odd}}}\n')
        recorder.until(lambda: sorted(recorder.present) == names(0))
    assert recorder.failures == []
