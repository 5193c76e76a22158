"""The request of a group is one that its leader and its workers can all be hosts of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.relay.objects import SELECTOR, Json, container, leader_worker_set
from tpu_slices.domain.model.facts import GROUP_EXCLUSIVE, TemplateRequest, Toleration
from tpu_slices.domain.model.slices import OwnerKind, Taint
from tpu_slices.domain.planning.fit import _affinity_holds, _taints_are_tolerated
from tpu_slices.wire.leader_worker_sets import requests_of
from tpu_slices.wire.readers import READERS

KEYS = ("a", "b")


def template(**spec: Any) -> Json:
    return {"spec": {"containers": [container()], "nodeSelector": dict(SELECTOR), **spec}}


def request_of(leader: Json, worker: Json) -> TemplateRequest:
    (only,) = requests_of(leader_worker_set(leaderTemplate=leader, workerTemplate=worker))
    return only


def tolerated(tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
    return not list(_taints_are_tolerated(tolerations, [taint]))


TOLERATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(KEYS),
            "operator": st.sampled_from(["Equal", "Exists"]),
            "value": st.sampled_from("xy"),
        },
        optional={"effect": st.sampled_from(["NoSchedule", "NoExecute"])},
    )
    | st.just({"operator": "Exists"}),
    max_size=3,
)
SELECTORS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from("xy"), max_size=2)
TERMS = st.lists(
    st.lists(
        st.builds(
            lambda key, values: {"key": key, "operator": "In", "values": values},
            st.sampled_from(KEYS),
            st.lists(st.sampled_from("xy"), min_size=1, max_size=2),
        ),
        min_size=1,
        max_size=2,
    ),
    min_size=1,
    max_size=2,
)


@given(leader=TOLERATIONS, worker=TOLERATIONS, key=st.sampled_from(KEYS), value=st.sampled_from("xy"))
def test_a_taint_is_tolerated_if_both_tolerate_it(leader: Json, worker: Json, key: str, value: str) -> None:
    taint = Taint(key=key, value=value)
    each = [request_of(template(tolerations=own), template(tolerations=own)).tolerations for own in (leader, worker)]
    together = request_of(template(tolerations=leader), template(tolerations=worker)).tolerations
    assert tolerated(together, taint) == all(tolerated(own, taint) for own in each)


def requiring(terms: list[list[Json]] | None) -> Json:
    required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms or ()]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"affinity": affinity} if terms else {}


@given(
    leader=TERMS | st.none(),
    worker=TERMS | st.none(),
    selected=SELECTORS,
    labels=st.dictionaries(st.sampled_from(KEYS), st.sampled_from("xy"), max_size=2),
)
def test_a_host_suits_if_it_suits_the_leader_and_the_workers(
    leader: Any, worker: Any, selected: dict[str, str], labels: dict[str, str]
) -> None:
    def suits(request: TemplateRequest) -> bool:
        return not list(_affinity_holds(request.affinity, labels))

    one, other = template(**requiring(leader)), template(**requiring(worker))
    alone = [suits(request_of(each, each)) for each in (one, other)]
    other["spec"]["nodeSelector"] |= selected
    assert suits(request_of(one, other)) == (all(alone) and selected.items() <= labels.items())


@pytest.mark.parametrize(
    ("field", "amounts", "more"),
    [
        ("cpu_milli", {"cpu": "200"}, 200_000),
        ("memory_bytes", {"memory": "1Gi"}, 1 << 30),
        ("ephemeral_bytes", {"ephemeral-storage": "1Gi"}, 1 << 30),
        ("unoffered", {"nvidia.com/gpu": "1"}, ("nvidia.com/gpu",)),
    ],
)
@pytest.mark.parametrize("of_workers", [True, False], ids=["of the workers", "of the leader"])
def test_the_greater_request_counts(field: str, amounts: Json, more: object, of_workers: bool) -> None:
    large = template()
    large["spec"]["containers"][0]["resources"]["requests"] |= amounts
    pair = (template(), large) if of_workers else (large, template())
    assert getattr(request_of(*pair), field) == more


def test_more_groups_than_kubernetes_can_count_are_refused_in_words() -> None:
    written = leader_worker_set(groups=2**31)
    with pytest.raises(ValueError, match=r"\"2147483648\" is not a valid number of groups"):
        requests_of(written)
    assert READERS[OwnerKind.LEADER_WORKER_SET].ref(written).groups is None


def test_an_annotation_that_yaml_reads_as_no_text_is_refused_in_words() -> None:
    written = leader_worker_set()
    written["metadata"]["annotations"] = {GROUP_EXCLUSIVE: True}
    with pytest.raises(ValueError, match="True must be a string: put it in quotes"):
        requests_of(written)
