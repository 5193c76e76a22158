"""Short Jobs go through one slice on the local stack, and nobody else comes to its hosts when GKE makes them anew."""

from __future__ import annotations

import pytest

from tests.examples.cluster import POOL, Cluster, Json
from tests.local.stack.capacity.site import HOSTS, QUEUE, Site, a_jobset, end, of, run

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]

KEY = "google.com/tpu-slice-key"


def hosts(own: Cluster, pool: str) -> list[Json]:
    return own.items("nodes", f"{POOL}={pool}")


def keys(own: Cluster, pool: str) -> set[str]:
    return {each["metadata"]["labels"].get(KEY, "") for each in hosts(own, pool)}


def are_anew(own: Cluster, pool: str, before: set[str]) -> bool:
    """Return whether all hosts of a pool are other nodes than before."""
    found = {each["metadata"]["uid"] for each in hosts(own, pool)}
    return len(found) == HOSTS and not found & before


def leader_of(own: Cluster, jobset: str) -> str:
    """Return the name of the only pod that a JobSet has as long as it is not scheduled; empty: there is none yet."""
    return next((pod["metadata"]["name"] for pod in own.items("pods", of(jobset))), "")


def nodes_of(own: Cluster, jobset: str) -> set[str]:
    """Return the nodes on which the pods of a JobSet are, or were."""
    return {node for pod in own.items("pods", of(jobset)) if (node := pod["spec"].get("nodeName"))}


def test_jobs_that_follow_each_other_go_through_one_slice_which_keeps_others_out(site: Site) -> None:
    own = site.cluster.within(QUEUE)
    own.create([a_jobset("llama")])
    own.until(lambda: run(own, "llama"))
    (pool,) = own.pools("llama")
    made_for = keys(own, pool)
    end(own, "llama")
    own.until(lambda: any("Kept warm until" in each["message"] for each in own.items("events")))
    own.create([a_jobset("gemma")])
    own.until(lambda: run(own, "gemma"))
    assert (own.pools("llama"), own.pools("gemma"), site.creations("llama")) == ([pool], [], 1)
    own.until(
        lambda: any("Got the slice that JobSet llama gave back" in each["message"] for each in own.items("events"))
    )

    before = {each["metadata"]["uid"] for each in hosts(own, pool)}
    site.stop_relay()
    own.press("repair", "llama")
    own.kubectl("delete", "jobset", "llama")
    own.create([a_jobset("llama")])
    own.until(lambda: are_anew(own, pool, before))
    assert keys(own, pool) == made_for, "GKE gives them the labels of their pool"
    own.until(lambda: any(said.startswith("0/") for said in own.said_of("Pod", leader_of(own, "llama"))))
    anew = {each["metadata"]["name"] for each in hosts(own, pool)}
    assert nodes_of(own, "llama") == set()
    site.start_relay()
    own.until(lambda: run(own, "llama") and run(own, "gemma"))
    assert nodes_of(own, "gemma") == anew
    assert not nodes_of(own, "llama") & anew
    for name in ("llama", "gemma"):
        end(own, name)
