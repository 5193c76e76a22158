"""What the emulator cannot be made to do: query streams that break off."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import grpc
import pytest
from google.cloud.firestore import Client
from google.cloud.firestore_v1._helpers import encode_dict
from google.cloud.firestore_v1.types import Document, RunQueryRequest, RunQueryResponse

from tests.builders import CLUSTER, NOW, a_record
from tpu_slices.adapters.firestore import FirestoreStore
from tpu_slices.ports.errors import Temporary
from tpu_slices.ports.store import Revision, Stored
from tpu_slices.wire.documents import encode, key_of
from tpu_standins.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


@dataclass(slots=True)
class BreakingFirestore(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Answers a query with one slice, after `breaks` streams that ended before their first document."""

    breaks: int
    queries: int = 0

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        if call.method != "/google.firestore.v1.Firestore/RunQuery":
            return None
        return grpc.unary_stream_rpc_method_handler(
            self._run_query, RunQueryRequest.deserialize, RunQueryResponse.serialize
        )

    def _run_query(self, request: RunQueryRequest, context: grpc.ServicerContext) -> Iterator[RunQueryResponse]:
        self.queries += 1
        if self.queries <= self.breaks:
            yield RunQueryResponse(read_time=NOW)
            context.abort(grpc.StatusCode.UNAVAILABLE, "the connection was drained")
        name = f"{request.parent}/{key_of(a_record())}"
        document = Document(name=name, fields=encode_dict(encode(a_record())), create_time=NOW, update_time=NOW)
        yield RunQueryResponse(document=document, read_time=NOW)


@pytest.fixture
def firestore() -> BreakingFirestore:
    return BreakingFirestore(breaks=0)


@pytest.fixture
def client(firestore: BreakingFirestore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads, handlers=(firestore,))
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
        server.start()
        client = Client(project="demo-project")
        yield client
        client.close()  # type: ignore[no-untyped-call]  # the client's own gap
        server.stop(None).wait()


def test_a_query_whose_stream_breaks_off_is_retried(firestore: BreakingFirestore, client: Client) -> None:
    firestore.breaks = 2

    store = FirestoreStore(client, timeout=PATIENCE_SECONDS)
    assert store.due_slices(CLUSTER, NOW, 10) == (Stored(a_record(), Revision(NOW.isoformat())),)
    assert firestore.queries == 3


def test_a_query_whose_streams_keep_breaking_off_is_temporary(firestore: BreakingFirestore, client: Client) -> None:
    firestore.breaks = 1_000

    store = FirestoreStore(client, timeout=PATIENCE_SECONDS)
    store._retry = store._retry.with_timeout(0.5)
    with pytest.raises(Temporary, match="drained"):
        store.due_slices(CLUSTER, NOW, 10)
