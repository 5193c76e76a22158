"""A stand-in for Triton on loopback: KServe's protocol with the extensions for binary tensors and classification.

It refuses what the protocol does not have: https://kserve.github.io/website/docs/concepts/architecture/data-plane/v2-protocol
and https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/protocol/extension_binary_data.html
"""

from __future__ import annotations

import json
import math
import re
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from tests.infra.environments.serving.model_repository import Array, Model, classified, load_all

Json = dict[str, Any]
HEADER = "Inference-Header-Content-Length"
MODEL_PATH = re.compile(r"/v2/models/([^/]+)(?:/versions/(\d+))?(?:/(ready|infer))?")


class Refused(Exception):
    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Triton:
    """What it serves, what is wrong with it, and what it was asked for."""

    models: Mapping[str, Model]
    address: str = ""
    ready_after: int = 0
    """How many questions whether it is ready are answered with no."""
    breaks_down: bool = False
    """Each inference fails."""
    versions: list[str | None] = field(default_factory=list)
    """Of each request, the version in its header."""

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def model(self, path: str) -> tuple[Model, str, str | None]:
        """Return the model that a path names, its version, and what is asked of it."""
        parts = MODEL_PATH.fullmatch(path)
        if parts is None:
            raise Refused("Not Found", 404)
        name, version, question = parts.groups()
        if name not in self.models or version not in {None, *self.models[name].versions}:
            raise Refused(f"Request for unknown model: '{name}' is not found", 404)
        return self.models[name], version or self.models[name].versions[-1], question

    def is_ready(self) -> bool:
        self.ready_after -= 1
        return self.ready_after < 0


def require(holds: object, message: str) -> None:
    if not holds:
        raise Refused(message)


def known(given: Json, *names: str) -> None:
    require(given.keys() <= set(names), f"unexpected: {sorted(given.keys() - set(names))}")


def metadata(model: Model) -> Json:
    inputs, outputs = (
        [{"name": each.name, "datatype": each.datatype, "shape": list(each.shape)}]
        for each in (model.input, model.output)
    )
    return {
        "name": model.name,
        "versions": list(model.versions),
        "platform": "onnxruntime_onnx",
        "inputs": inputs,
        "outputs": outputs,
    }


def read_input(model: Model, request: Json, binary: bytes) -> Array:
    """Return the one input of a request."""
    given = request["inputs"]
    require(len(given) == 1, f"expected 1 inputs but got {len(given)} inputs for model '{model.name}'")
    [tensor] = given
    known(tensor, "name", "shape", "datatype", "parameters", "data")
    require(tensor["name"] == model.input.name, f"unexpected inference input '{tensor['name']}'")
    require(tensor["datatype"] == model.input.datatype, f"datatype is {tensor['datatype']}")
    shape = tensor["shape"]
    wanted = model.input.shape
    require(len(shape) == len(wanted), f"unexpected shape {shape}")
    require(all(want in {-1, size} for want, size in zip(wanted, shape, strict=True)), f"unexpected shape {shape}")
    require(not model.most or 1 <= shape[0] <= model.most, f"inference request batch-size must be <= {model.most}")
    size = tensor.get("parameters", {}).get("binary_data_size")
    if size is None:
        require(not binary, "unexpected additional input data")
        values = np.array(tensor["data"], dtype=np.float32).reshape(-1)
    else:
        require("data" not in tensor, "binary and other data for one tensor")
        require(size == len(binary), f"{size} bytes said, {len(binary)} sent")
        values = np.frombuffer(binary, dtype="<f4")
    require(values.size == math.prod(shape), f"got {values.size} elements for shape {shape}")
    return values.reshape(shape)


def answered(model: Model, version: str, request: Json, binary: bytes) -> tuple[Json, bytes]:
    """Return the answer of an inference: its JSON, and the binary data after it."""
    known(request, "id", "parameters", "inputs", "outputs")
    values = model.run(read_input(model, request, binary))
    wanted = request.get("outputs") or [{"name": model.output.name}]
    require([each["name"] for each in wanted] == [model.output.name], "unexpected inference output")
    known(wanted[0], "name", "parameters")
    parameters = wanted[0].get("parameters", {})
    known(parameters, "classification", "binary_data")
    as_binary = parameters.get("binary_data", request.get("parameters", {}).get("binary_data_output", False))
    output, data = written(model, values, parameters.get("classification", 0), as_binary=as_binary)
    answer: Json = {"model_name": model.name, "model_version": version, "outputs": [output]}
    if "id" in request:
        answer["id"] = request["id"]
    return answer, data


def written(model: Model, values: Array, count: int, *, as_binary: bool) -> tuple[Json, bytes]:
    """Return the output as the protocol writes it."""
    name, datatype, shape, elements = model.output.name, model.output.datatype, values.shape, values.ravel().tolist()
    encoded = values.astype("<f4").tobytes()
    if count:
        rows = values if model.most else values.reshape(1, -1)
        elements = [each for row in rows for each in classified(model, row, count)]
        found = min(count, rows.shape[-1])
        datatype, shape = "BYTES", (len(rows), found) if model.most else (found,)
        encoded = b"".join(struct.pack("<I", len(each)) + each.encode() for each in elements)
    output = {"name": name, "datatype": datatype, "shape": list(shape)}
    if as_binary:
        return {**output, "parameters": {"binary_data_size": len(encoded)}}, encoded
    return {**output, "data": elements}, b""


class Requests(BaseHTTPRequestHandler):
    """Answers the requests of one client."""

    protocol_version = "HTTP/1.1"
    server: Listener

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        triton = self._asked()
        if self.path in {"/v2/health/ready", "/v2/health/live"}:
            self._say(200 if self.path.endswith("live") or triton.is_ready() else 503)
            return
        try:
            model, _, question = triton.model(self.path)
            require(question in {None, "ready"}, "method not allowed")
        except Refused as wrong:
            self._refuse(wrong)
        else:
            self._say(200, b"" if question else json.dumps(metadata(model)).encode())

    def do_POST(self) -> None:
        triton = self._asked()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        size = int(self.headers.get(HEADER, len(body)))
        try:
            model, version, question = triton.model(self.path)
            require(question == "infer" and size <= len(body), "bad request")
            require(not triton.breaks_down, "onnx runtime error 1: out of memory")
            answer, data = answered(model, version, json.loads(body[:size]), body[size:])
        except Refused as wrong:
            self._refuse(wrong)
        except (KeyError, TypeError, ValueError) as wrong:
            self._refuse(Refused(f"failed to parse the request: {wrong!r}"))
        else:
            header = json.dumps(answer).encode()
            self._say(200, header + data, **({HEADER: str(len(header))} if data else {}))

    def _asked(self) -> Triton:
        self.server.triton.versions.append(self.headers["triton-version"])
        return self.server.triton

    def _refuse(self, wrong: Refused) -> None:
        self._say(wrong.status, json.dumps({"error": str(wrong)}).encode())

    def _say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, triton: Triton) -> None:
        self.triton = triton
        super().__init__(("127.0.0.1", 0), Requests)


@contextmanager
def serving(repository: Path) -> Iterator[Triton]:
    """Serve the models of a repository on a port of its own."""
    triton = Triton(load_all(repository))
    with Listener(triton) as server:
        triton.address = f"127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield triton
        finally:
            server.shutdown()
            thread.join()
