"""google.container.v1.ClusterManager over plaintext gRPC, on the loopback interface."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.rpc import (
    error_details_pb2,
    status_pb2,
)
from grpc_status import rpc_status

from tpu_standins.gke.codes import Code
from tpu_standins.gke.control_plane import ControlPlane
from tpu_standins.gke.rules import Refusal
from tpu_standins.gke.service import METHODS

_SERVICE = "/google.container.v1.ClusterManager/"
_BETA = "/google.container.v1beta1.ClusterManager/"
"""Creation alone; what only the beta version has is taken and not simulated."""
_THREADS = 16
_GRACE = 0.5


class ClusterManagerHandlers:
    """A grpc.GenericRpcHandler: the methods covered, and an explicit UNIMPLEMENTED for the service's other methods."""

    def __init__(self, plane: ControlPlane, token: Callable[[], str]) -> None:
        self._plane = plane
        self._token = token

    def service(self, details: Any) -> Any:
        """Return the method's handler; None for other services, as the interface of gRPC handlers requires."""
        path: str = details.method
        path = path.replace(f"{_BETA}CreateNodePool", f"{_SERVICE}CreateNodePool")
        if not path.startswith(_SERVICE):
            return None
        name = path.removeprefix(_SERVICE)
        if name not in METHODS:
            return grpc.unary_unary_rpc_method_handler(self._behaviour(name))
        method = METHODS[name]
        return grpc.unary_unary_rpc_method_handler(
            self._behaviour(name), method.request.deserialize, method.response.serialize
        )

    def _behaviour(self, name: str) -> Callable[[Any, Any], Any]:
        def respond(request: Any, context: Any) -> Any:
            answer = self._plane.answer(name, request) if name in METHODS else _not_covered(name)
            if isinstance(answer, Refusal):
                context.abort_with_status(rpc_status.to_status(self._status(answer)))
            return answer

        return respond

    def _status(self, refusal: Refusal) -> Any:
        """Return the status with RequestInfo, the only detail that GKE is known to send (tf#15205)."""
        status = status_pb2.Status(code=refusal.code, message=refusal.message)
        request_id = f"0x{self._token().replace('-', '')[:16]}"
        status.details.add().Pack(error_details_pb2.RequestInfo(request_id=request_id))
        return status


def _not_covered(name: str) -> Refusal:
    message = f"ClusterManager.{name} is not implemented by the local GKE."
    return Refusal(code=Code.UNIMPLEMENTED, message=message, rule="method-not-covered")


class Server:
    """Listens from its construction on; `port` is the actual port."""

    def __init__(self, plane: ControlPlane, token: Callable[[], str], port: int = 0) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="gke-call")
        self._server = grpc.server(self._threads, options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((ClusterManagerHandlers(plane, token),))
        self.port: int = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()

    def stop(self) -> None:
        self._server.stop(_GRACE).wait()
        self._threads.shutdown()
