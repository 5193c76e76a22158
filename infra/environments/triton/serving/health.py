"""The check that a Triton serves the sample model: it is ready, has the model, and answers what is known beforehand.

    python -m infra.environments.triton.serving.health --url http://ADDRESS [--version canary] [--patience SECONDS]

It tries again until all of it holds, and exits with 1 if that is not so in time: a new load balancer takes minutes. It
needs no library. The requests are those of KServe's protocol, with Triton's classification extension:
https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/protocol/extension_classification.html
"""

import argparse
import http.client
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from infra.environments.triton.serving.sample_model import COLOURS, INPUT, MODEL, OUTPUT, SIDE

EXPECTED = {"red": 0.75, "blue": 0.25}
"""The shares of the colours in the picture that is sent."""
TOLERANCE = 0.001
PAUSE_SECONDS = 5.0
TIMEOUT_SECONDS = 30.0
OK = 200


class Unhealthy(Exception):
    """A check failed: the reason, and what can be done."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}\n  {remedy}")


@dataclass(frozen=True, slots=True)
class Server:
    """Triton at an address, or the version of it that is named."""

    url: str
    version: str | None = None

    def ask(self, path: str, body: object = None) -> tuple[int, bytes]:
        """Return the status and the body of an answer. Raises Unhealthy if there is none."""
        parts = urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.netloc, timeout=TIMEOUT_SECONDS)
        headers = {"triton-version": self.version} if self.version else {}
        try:
            if body is None:
                connection.request("GET", path, headers=headers)
            else:
                headers["Content-Type"] = "application/json"
                connection.request("POST", path, json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as wrong:
            raise Unhealthy(
                f"{self.url} does not answer: {str(wrong) or type(wrong).__name__}",
                "Has the gateway an address, and pods? kubectl get service,pods --selector istio=ingressgateway"
                " --namespace NAMESPACE. Does --source-range let this machine in?",
            ) from wrong
        finally:
            connection.close()


def check(server: Server) -> str:
    """Return what the model answered. Raises Unhealthy."""
    _require_ready(server)
    _require_model(server)
    answer = _inferred(server)
    shares = {label: float(value) for value, _, label in (each.split(":") for each in answer)}
    if shares.keys() != EXPECTED.keys() or any(abs(shares[each] - EXPECTED[each]) > TOLERANCE for each in shares):
        raise Unhealthy(
            f"{MODEL} answered {shares} instead of {EXPECTED}",
            "Is its folder in the model repository the one that sample_model.py writes?",
        )
    return ", ".join(f"{label} {share:.2f}" for label, share in shares.items())


def _require_ready(server: Server) -> None:
    status, said = server.ask("/v2/health/ready")
    if status != OK:
        raise Unhealthy(
            f"Triton is not ready: {_shown(status, said)}",
            "Its pods tell why: kubectl describe pods, and kubectl logs, --selector app=triton-server"
            " --container triton --namespace NAMESPACE.",
        )


def _require_model(server: Server) -> None:
    status, said = server.ask(f"/v2/models/{MODEL}/ready")
    if status != OK:
        raise Unhealthy(
            f"the model {MODEL} is not loaded: {_shown(status, said)}",
            "Is it in the model repository? gcloud storage ls --recursive gs://BUCKET/FOLDER. Triton loads models when"
            " it starts: kubectl rollout restart deployment --selector app=triton-server --namespace NAMESPACE.",
        )


def _inferred(server: Server) -> list[str]:
    """Return the classes of a picture that is three quarters red and one quarter blue."""
    pixels = [COLOURS["red"]] * (SIDE * SIDE * 3 // 4) + [COLOURS["blue"]] * (SIDE * SIDE // 4)
    data = [pixel[channel] for channel in range(3) for pixel in pixels]
    request = {
        "inputs": [{"name": INPUT, "datatype": "FP32", "shape": [1, 3, SIDE, SIDE], "data": data}],
        "outputs": [{"name": OUTPUT, "parameters": {"classification": len(EXPECTED)}}],
    }
    status, said = server.ask(f"/v2/models/{MODEL}/infer", request)
    if status == OK and (classes := _classes(said)) is not None:
        return classes
    raise Unhealthy(
        f"the model {MODEL} gave no classes: {_shown(status, said)}",
        "kubectl logs --selector app=triton-server --container triton --namespace NAMESPACE tells why.",
    )


def _classes(said: bytes) -> list[str] | None:
    """Return the classes in an answer, each as SCORE:INDEX:LABEL, or None if it is another kind of answer."""
    try:
        [output] = json.loads(said)["outputs"]
        classes: list[Any] = output["data"]
    except (ValueError, LookupError, TypeError):
        return None
    return classes if all(isinstance(each, str) and each.count(":") == 2 for each in classes) else None


def _shown(status: int, said: bytes) -> str:
    return f"status {status} {said[:300].decode(errors='replace').strip()}".strip()


def main(arguments: Sequence[str] | None = None, sleep: Callable[[float], None] = time.sleep) -> int:
    parser = argparse.ArgumentParser(prog="health", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--url", required=True, help="http://ADDRESS of the gateway")
    parser.add_argument("--version", choices=("stable", "canary"), help="the version to ask, whatever the weights")
    parser.add_argument("--patience", type=float, default=600, metavar="SECONDS", help="for how long to try again")
    asked = parser.parse_args(arguments)
    server, ends = Server(asked.url, asked.version), time.monotonic() + asked.patience
    while True:
        try:
            sys.stdout.write(f"{asked.url} serves {MODEL}: {check(server)}\n")
        except Unhealthy as wrong:
            if time.monotonic() >= ends:
                sys.stderr.write(f"{wrong}\n")
                return 1
        else:
            return 0
        sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
