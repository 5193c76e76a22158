"""Whatever tenants, and a relay that lies for them, bring into the books, no document comes near Firestore's limit."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, a_jobset_ref, a_leader, a_request, leaders_wait, settings
from tests.world import World
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.facts import REQUESTED_ANNOTATIONS, Listed, TemplateRequest
from tpu_slices.domain.model.slices import SLICES_PER_WORKLOAD, WorkloadUid
from tpu_slices.domain.records.transitions import HISTORY
from tpu_slices.flows.receive import receive
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.bounds import LEADERS_PER_FACT, TEMPLATE_BYTES
from tpu_slices.wire.messages import decode_fact, encode_fact

FAR_BELOW = 200_000
"""A fifth of what Firestore stores."""
SMALL = 3 * TEMPLATE_BYTES
LONG = "k" * (TEMPLATE_BYTES - 1_000)
EVERYTHING = Allowed(service_accounts=("*",), additional_networks=("*",), copied_labels=("*",))


def largest(world: World) -> tuple[int, str]:
    return max((world.store.size(key), str(key)) for key in world.store.places())


def annotated(annotation: str, text: str) -> TemplateRequest:
    return a_request(requested_annotations=((annotation, text),))


TEMPLATES = [
    a_request(topology="4" * TEMPLATE_BYTES),
    a_request(accelerator=LONG),
    a_request(node_selector=(*a_request().node_selector, ("tenant.example/key", LONG))),
    a_request(node_selector=(*a_request().node_selector, *((f"k{number}", "") for number in range(1_500)))),
    *(annotated(annotation, LONG) for annotation in REQUESTED_ANNOTATIONS),
    *(annotated(annotation, "a:b," * 4_000) for annotation in REQUESTED_ANNOTATIONS),
]


@pytest.mark.parametrize("request_", TEMPLATES, ids=range(len(TEMPLATES)))
def test_a_template_as_large_as_can_be_sent_is_stored_in_a_small_document(request_: TemplateRequest) -> None:
    world = World()
    fact = leaders_wait(workload=a_jobset_ref(name="n" * 253), requests=(request_,), waiting=(a_leader(),))
    message = encode_fact(fact)
    assert decode_fact(message.data, message.attributes) == fact
    with world.loses(Listed):  # by which it is found that no such JobSet is there
        for allowed in [EVERYTHING, Allowed()] * HISTORY:
            world.store.put_settings(settings(policy=Policy(everyone=allowed)))
            world.publish(fact)
            world.settle(minutes=2)
    assert largest(world)[0] < SMALL


def test_the_record_of_the_largest_jobset_is_small() -> None:
    world = World()
    jobset = a_jobset_ref(name="n" * 253)
    for first in range(0, SLICES_PER_WORKLOAD, LEADERS_PER_FACT):
        leaders = tuple(a_leader(index) for index in range(first, first + LEADERS_PER_FACT))
        receive(
            leaders_wait(workload=jobset, requests=(a_request(replicas=SLICES_PER_WORKLOAD),), waiting=leaders),
            CLUSTER,
            world.deps,
        )
    (record,) = world.store.jobset_records(CLUSTER)
    assert len(record.demand) == SLICES_PER_WORKLOAD
    assert largest(world)[0] < FAR_BELOW


def test_a_jobset_whose_templates_change_all_the_time_is_refused_before_its_record_is_too_large() -> None:
    world = World()
    uid = WorkloadUid("uid-forged")

    def report(template: int) -> None:
        name = f"slice-{template}"
        request = a_request(replicated_job=name, replicas=LEADERS_PER_FACT)
        leaders = tuple(a_leader(index, replicated_job=name) for index in range(LEADERS_PER_FACT))
        receive(leaders_wait(workload=a_jobset_ref(uid=uid), requests=(request,), waiting=leaders), CLUSTER, world.deps)

    for template in range(SLICES_PER_WORKLOAD // LEADERS_PER_FACT):
        report(template)
    with pytest.raises(Permanent, match=f"research/llama has more than {SLICES_PER_WORKLOAD} slices"):
        report(99)
    (record,) = world.store.jobset_records(CLUSTER)
    assert len(record.demand) == SLICES_PER_WORKLOAD
