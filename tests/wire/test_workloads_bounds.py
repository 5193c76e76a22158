"""Whatever a tenant writes into a JobSet fits into a message."""

import pytest

from tests.builders import a_jobset_ref
from tests.relay.objects import SELECTOR, Json, jobset, pod, replicated_job
from tests.wire.test_workloads import COPY_LABELS, only_request, refusal
from tpu_slices.domain.model.facts import SlicesWanted, WaitingLeader
from tpu_slices.domain.model.slices import SLICES_PER_WORKLOAD
from tpu_slices.wire.bounds import ERROR_CHARACTERS, TEMPLATE_BYTES, TEMPLATES
from tpu_slices.wire.messages import MOST_BYTES, bytes_of, decode_fact, encode_fact
from tpu_slices.wire.workloads import (
    LABELS,
    SELECTOR_CHARACTERS,
    beyond_template,
    leader_of,
    requests_of,
)


def many(count: int, length: int = 60) -> dict[str, str]:
    return {f"example.com/{number:05}-{'k' * length}": "v" * 60 for number in range(count)}


def test_a_template_keeps_a_hundred_labels() -> None:
    request = only_request(metadata={"labels": many(3000, length=1)})
    assert request.labels == tuple(sorted(many(3000, length=1).items()))[:LABELS]
    assert request.node_selector == tuple(sorted(SELECTOR.items()))


@pytest.mark.parametrize(
    "template",
    [
        {"nodeSelector": {**SELECTOR, **many(3000)}},
        {"tolerations": [{"key": key, "operator": "Exists"} for key in many(3000)]},
        {"metadata": {"annotations": {COPY_LABELS: "a" * 250_000}}},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": list(many(3000))}]}
                        ]
                    }
                }
            }
        },
    ],
    ids=["selectors", "tolerations", "requested_annotations", "affinity"],
)
def test_a_template_too_large_for_a_message_is_refused_and_not_left_out(template: Json) -> None:
    request = only_request(**template)
    assert bytes_of(request) <= TEMPLATE_BYTES
    assert (request.accelerator, request.topology, request.chips_per_pod) == ("tpu-v4-podslice", "2x2x4", 4)
    assert "pod template" in refusal(request).message
    assert "at most 16384 bytes are read" in refusal(request).message


def test_labels_are_dropped_before_anything_else() -> None:
    request = only_request(metadata={"labels": many(100, length=200)})
    assert (request.labels, request.affinity) == ((), ())
    assert request.node_selector == tuple(sorted(SELECTOR.items()))


def test_a_pod_with_more_selectors_than_a_node_can_have_is_refused() -> None:
    leader = leader_of(pod(spec={"nodeSelector": {**SELECTOR, **many(3000)}}))
    assert leader.node_selector is not None
    assert 3_000 < sum(len(key) + len(value) for key, value in leader.node_selector) <= SELECTOR_CHARACTERS
    assert "node labels" in refusal(only_request(), leader).message


@pytest.mark.slow
def test_the_largest_jobset_fits_into_a_message() -> None:
    metadata = {"labels": many(2 * LABELS), "annotations": {COPY_LABELS: "\x01" * 20_000}}
    tolerations = [{"key": key, "operator": "Exists"} for key in many(250)]
    job = replicated_job(tolerations=tolerations, nodeSelector={**SELECTOR, **dict.fromkeys(SELECTOR, "\u2028" * 500)})
    job["template"]["spec"]["template"]["metadata"] = metadata
    jobs = [job | {"name": f"{number:063}", "replicas": 4} for number in range(TEMPLATES)]
    requests = requests_of(jobset(spec={"replicatedJobs": jobs}))
    fact = SlicesWanted(
        workload=a_jobset_ref(namespace="n" * 63, name="j" * 253),
        requests=requests,
        waiting=(WaitingLeader(replicated_job=requests[0].replicated_job, job_index=0),),
    )
    message = encode_fact(fact)
    assert len(message.data) < MOST_BYTES - 300_000
    assert decode_fact(message.data, message.attributes) == fact
    assert len(requests) == TEMPLATES


def test_more_templates_than_fit_into_a_message_are_an_error() -> None:
    jobs = [replicated_job(f"w{number}") for number in range(TEMPLATES + 1)]
    with pytest.raises(ValueError, match="501 request TPU, at most 500 are supported"):
        requests_of(jobset(spec={"replicatedJobs": jobs}))


@pytest.mark.parametrize("replicas", [[SLICES_PER_WORKLOAD + 1], [SLICES_PER_WORKLOAD, 1], [2**31 - 1] * 3])
def test_more_slices_than_a_record_can_list_are_an_error(replicas: list[int]) -> None:
    jobs = [replicated_job(f"w{number}", count) for number, count in enumerate(replicas)]
    with pytest.raises(ValueError, match=f"the replicas are {sum(replicas)} slices together, at most 2000"):
        requests_of(jobset(spec={"replicatedJobs": jobs}))


@pytest.mark.parametrize("part", [{"replicas": "2" * 100_000}, {"replicas": [10**4_000]}, {"name": {"n" * 100_000: 1}}])
def test_an_error_that_quotes_a_tenant_stays_short(part: Json) -> None:
    with pytest.raises(ValueError, match="replicatedJob") as raised:
        requests_of(jobset(spec={"replicatedJobs": [replicated_job() | part]}))
    assert len(str(raised.value)) <= ERROR_CHARACTERS


def test_a_replicated_job_whose_name_is_too_long_is_left_out() -> None:
    jobs = [replicated_job("w" * 64), replicated_job("w" * 63)]
    assert [request.replicated_job for request in requests_of(jobset(spec={"replicatedJobs": jobs}))] == ["w" * 63]


def test_a_pods_own_labels_are_limited_alike() -> None:
    leader = beyond_template(leader_of(pod(labels=many(3000, length=1))), only_request())
    assert len(leader.labels) == LABELS
    assert leader.labels == tuple(sorted(leader.labels))
    assert beyond_template(leader_of(pod(labels=many(100, length=200))), only_request()).labels == ()
