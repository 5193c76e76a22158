from tests.relay.objects import bound_pod, jobset, node, pod
from tests.relay.watched import Watched, bindings
from tpu_slices.domain.model.facts import LeaderBound, SlicesWanted

HOST = "tpu-llama-0-aaaaaaaaaaaaa-1-0"


def test_a_leader_on_our_hosts_is_reported_as_bound_and_later_as_unbound(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    facts = watched.due_facts()
    assert bindings(facts) == [("pod-0", True)]
    (bound,) = (fact for fact in facts if isinstance(fact, LeaderBound))
    assert (bound.slice_id, bound.attempt) == ("tpu-llama-0-aaaaaaaaaaaaa", 1)
    assert (bound.occupant.owner.uid, bound.occupant.job) == ("u-1", "llama-workers-0")
    watched.lose(bound_pod(0, HOST))
    assert bindings(watched.due_facts()) == [("pod-0", False)]
    watched.pass_time(300)
    assert bindings(watched.due_facts()) == []


def test_a_leader_that_ended_is_unbound(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.due_facts()
    watched.see(bound_pod(0, HOST, phase="Succeeded"))
    assert bindings(watched.due_facts()) == [("pod-0", False)]


def test_the_order_in_which_leader_jobset_and_host_are_seen_does_not_matter(watched: Watched) -> None:
    watched.see(bound_pod(0, HOST))
    watched.see(node(0))
    assert bindings(watched.due_facts()) == []
    watched.see(jobset())
    assert bindings(watched.due_facts()) == [("pod-0", True)]


def test_a_leader_whose_host_is_gone_is_unbound(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.due_facts()
    watched.lose(node(0))
    assert bindings(watched.due_facts()) == [("pod-0", False)]


def test_a_leader_whose_jobset_is_gone_is_unbound(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.due_facts()
    watched.lose(jobset())
    assert bindings(watched.due_facts()) == [("pod-0", False)]


def test_a_leader_on_other_nodes_is_not_reported(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, "gke-default-pool-1"))
    assert bindings(watched.due_facts()) == []


def test_a_binding_is_repeated_every_five_minutes(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.due_facts()
    watched.pass_time(300)
    assert bindings(watched.due_facts()) == [("pod-0", True)]


def test_demand_is_repeated_when_another_jobset_occupies_its_hosts(watched: Watched) -> None:
    guest = bound_pod(0, HOST, uid="guest")
    guest["metadata"]["labels"] |= {
        "jobset.sigs.k8s.io/jobset-name": "guest",
        "jobset.sigs.k8s.io/jobset-uid": "u-2",
        "batch.kubernetes.io/job-name": "guest-workers-0",
    }
    watched.see(jobset(), pod(0), node(0))
    watched.pass_time(1)
    watched.due_facts()
    watched.see(jobset("guest", uid="u-2"), guest)
    assert bindings(watched.due_facts()) == [("guest", True)]
    watched.pass_time(1)
    (again,) = [fact for fact in watched.due_facts() if isinstance(fact, SlicesWanted)]
    assert again.workload.owner.uid == "u-1"
