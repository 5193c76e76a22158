"""The REST API of Compute Engine over plaintext HTTP, on the loopback interface.

The client library's endpoint is `http://127.0.0.1:PORT` (its option `api_endpoint`, with anonymous credentials). Its
own waiting for operations, `insert(...).result()`, asks compute.googleapis.com whatever that option says: whoever wants
to stay on this machine uses `insert_unary`, and a client of operations.
"""

from google.protobuf import json_format

from tpu_standins.cloud.loopback import Answered, LoopbackServer, as_json
from tpu_standins.compute.control_plane import ControlPlane
from tpu_standins.compute.errors import Refusal


def answered(plane: ControlPlane, method: str, target: str, body: bytes) -> Answered:
    """Return the HTTP response to a request."""
    message = plane.answer(method, target, body)
    if isinstance(message, Refusal):
        return as_json(int(message.code), message.as_json())
    return as_json(200, json_format.MessageToDict(type(message).pb(message)))


class Server(LoopbackServer):
    """Listens from its construction on; `url` has the actual port."""

    def __init__(self, plane: ControlPlane, port: int = 0) -> None:
        super().__init__(lambda asked: answered(plane, asked.method, asked.target, asked.body), port, "compute-api")
