"""How the local GKE answers an order, in a cluster that has what the order's settings name."""

from __future__ import annotations

from tpu_slices.adapters.gke.requests import create_request
from tpu_slices.domain.planning.host_labels import workload_policy_of
from tpu_slices.ports.backend import PoolOrder
from tpu_standins.gke.paths import policy_path
from tpu_standins.gke.refusals import refusal
from tpu_standins.gke.rules import Ask
from tpu_standins.testing.gke import DEMO, a_cluster, a_state


def why_refused(order: PoolOrder) -> str | None:
    """Return GKE's error message; None: it would create the pool."""
    assert order.spec is not None
    cluster = a_cluster(
        zones=("us-central2-b", order.spec.zone),
        release_channel="REGULAR" if order.settings.auto_upgrade else None,
    )
    state, policy = a_state(cluster), workload_policy_of(order.spec, order.settings)
    if policy is not None:
        state = state.with_policy(policy_path(cluster.path, policy), str(order.spec.topology))
    pool = create_request(order).node_pool
    no = refusal("CreateNodePool", Ask(state=state, cluster_path=DEMO, name=pool.name, spec=pool))
    return None if no is None else no.message
