from tests.relay.objects import bound_pod, jobset, node, pod
from tests.relay.watched import Watched, bindings
from tpu_slices.domain.model.facts import LeaderBound, SlicesWanted

HOST = "tpu-llama-0-aaaaaaaaaaaaa-1-0"


def test_a_leader_on_our_hosts_is_reported_and_so_is_its_leaving(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    facts = watched.said()
    assert bindings(facts) == [("pod-0", True)]
    (bound,) = (fact for fact in facts if isinstance(fact, LeaderBound))
    assert (bound.slice_id, bound.attempt) == ("tpu-llama-0-aaaaaaaaaaaaa", 1)
    assert (bound.occupant.owner.uid, bound.occupant.job) == ("u-1", "llama-workers-0")
    watched.lose(bound_pod(0, HOST))
    assert bindings(watched.said()) == [("pod-0", False)]
    watched.pass_time(300)
    assert bindings(watched.said()) == []


def test_a_leader_that_ended_has_left(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.said()
    watched.see(bound_pod(0, HOST, phase="Succeeded"))
    assert bindings(watched.said()) == [("pod-0", False)]


def test_the_order_in_which_leader_jobset_and_host_are_seen_does_not_matter(watched: Watched) -> None:
    watched.see(bound_pod(0, HOST))
    watched.see(node(0))
    assert bindings(watched.said()) == []
    watched.see(jobset())
    assert bindings(watched.said()) == [("pod-0", True)]


def test_a_leader_whose_host_is_gone_has_left(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.said()
    watched.lose(node(0))
    assert bindings(watched.said()) == [("pod-0", False)]


def test_a_leader_whose_jobset_is_gone_has_left(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.said()
    watched.lose(jobset())
    assert bindings(watched.said()) == [("pod-0", False)]


def test_a_leader_on_other_nodes_is_nobodys_business(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, "gke-default-pool-1"))
    assert bindings(watched.said()) == []


def test_who_is_on_a_slice_is_said_again_every_five_minutes(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.said()
    watched.pass_time(300)
    assert bindings(watched.said()) == [("pod-0", True)]


def test_whose_hosts_another_jobset_took_is_said_to_wait_again_at_once(watched: Watched) -> None:
    guest = bound_pod(0, HOST, uid="guest")
    guest["metadata"]["labels"] |= {
        "jobset.sigs.k8s.io/jobset-name": "guest",
        "jobset.sigs.k8s.io/jobset-uid": "u-2",
        "batch.kubernetes.io/job-name": "guest-workers-0",
    }
    watched.see(jobset(), pod(0), node(0))
    watched.pass_time(1)
    watched.said()
    watched.see(jobset("guest", uid="u-2"), guest)
    assert bindings(watched.said()) == [("guest", True)]
    watched.pass_time(1)
    (again,) = [fact for fact in watched.said() if isinstance(fact, SlicesWanted)]
    assert again.workload.owner.uid == "u-1"
