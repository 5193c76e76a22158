"""What still exists when all steps are over; there should be nothing."""

from collections.abc import Iterable, Iterator

import grpc
from google import pubsub_v1
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from infra.local.demo.report import Leftovers
from infra.local.demo.view import View
from infra.local.demo.watch import Eyes
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.records.limiters import Slot
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.wire.documents import COLLECTIONS
from tpu_standins.clients.objects import Object
from tpu_standins.patience import PATIENCE_SECONDS


def leftovers(eyes: Eyes, view: View) -> Leftovers:
    """Return the names of everything left but dead letters, which can be pulled only once."""
    return {
        "node pools or instance groups": tuple(view.pools),
        "unsettled slice records": tuple(record.name for record in view.slices if not _settled(record)),
        "slots": tuple(str(document.get("slice_id")) for document in eyes.documents(COLLECTIONS[Slot])),
        "JobSets": _names(eyes.of_demo("jobsets")),
        "TPUNodeGroups": tuple(group.name for group in view.groups),
        "pods": _names(eyes.of_demo("pods")),
        "nodes": _names(eyes.hosts()),
        "rejected messages": tuple(str(document.get("why")) for document in eyes.documents("rejected")),
    }


def dead_letters(eyes: Eyes) -> Leftovers:
    return {"dead letters": tuple(_pulled(eyes))}


def _names(items: Iterable[Object]) -> tuple[str, ...]:
    return tuple(item["metadata"]["name"] for item in items)


def _settled(record: SliceRecord) -> bool:
    return record.phase is Phase.GONE and record.next_reconcile_at is None


def _pulled(eyes: Eyes) -> Iterator[str]:
    addresses = eyes.addresses
    with grpc.insecure_channel(addresses.pubsub) as channel:
        subscriber = pubsub_v1.SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))
        name = f"projects/{addresses.project}/subscriptions/dead-letters"
        asked = {"subscription": name, "max_messages": 100, "return_immediately": True}
        answer = subscriber.pull(asked, timeout=PATIENCE_SECONDS, retry=None)
        for received in answer.received_messages:
            yield received.message.data.decode(errors="replace")
