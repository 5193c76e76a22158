"""`python -m infra.local.gke`: serves until SIGTERM; prints its addresses on one line."""

import argparse
import os
import signal
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from infra.local.clients.loopback import ButtonServer
from infra.local.gke.audit import sink
from infra.local.gke.buttons import press
from infra.local.gke.control_plane import ControlPlane
from infra.local.gke.kubernetes_nodes import KubernetesNodes
from infra.local.gke.nodes import Nodes, RememberedNodes
from infra.local.gke.paths import parse_cluster
from infra.local.gke.server import Server
from infra.local.gke.state import Cluster, Pace, State
from infra.local.timed import Outside

_PACES = (
    *("create", "join", "ready", "chips", "delete", "repair", "update", "stockout", "quota", "log"),
    *("shutdown", "unhealthy", "fill", "run", "history", "join_limit"),
)
SIGNAL_SECONDS = 0.5
"""How late a signal is noticed at most: one that comes as the main thread begins to wait does not wake it."""


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.local.gke", description="A local GKE control plane.")
    parser.add_argument("--port", type=int, default=0, help="port of the gRPC API; 0: any free port")
    parser.add_argument("--buttons-port", type=int, default=0, help="port of the HTTP buttons; 0: any free port")
    parser.add_argument(
        "--cluster",
        action="append",
        required=True,
        metavar="projects/P/locations/L/clusters/C",
        help="may be repeated; the Nodes of all clusters are registered in one Kubernetes API",
    )
    parser.add_argument("--zones", help="comma-separated; default: LOCATION-b, or the location if it is a zone")
    parser.add_argument("--release-channel", choices=["RAPID", "REGULAR", "STABLE", "none"], default="REGULAR")
    parser.add_argument("--version", default="1.34.1-gke.3084001")
    parser.add_argument(
        "--workload-policies",
        default="tpu-provisioner-",
        metavar="PREFIX",
        help="prefix of their names, one for each topology of tpu7x; none: there are none",
    )
    parser.add_argument(
        "--concurrent-operations", type=int, default=5, help="limit per cluster; calls beyond it fail with 429"
    )
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="where Nodes are made (default: KUBECONFIG, else nowhere)"
    )
    parser.add_argument(
        "--operations-topic", metavar="projects/P/topics/T", help="topic of the log sink (default: no sink)"
    )
    defaults = Pace()
    for name in _PACES:
        parser.add_argument(f"--{name.replace('_', '-')}-seconds", type=float, default=getattr(defaults, name))
    return parser


def _cluster(path: str, arguments: argparse.Namespace) -> Cluster:
    parsed = parse_cluster(path)
    if parsed is None:
        raise SystemExit(f"not a cluster path: {path}")
    zonal = parsed.region != parsed.location
    zones = arguments.zones.split(",") if arguments.zones else [parsed.location if zonal else f"{parsed.location}-b"]
    return Cluster(
        path=parsed,
        id=uuid.uuid4().hex * 2,
        zones=tuple(zones),
        release_channel=None if arguments.release_channel == "none" else arguments.release_channel,
        version=arguments.version,
        concurrent_operations=arguments.concurrent_operations,
        policies=None if arguments.workload_policies == "none" else arguments.workload_policies,
    )


def _nodes(kubeconfig: Path | None, environment: Mapping[str, str], closing: ExitStack) -> Nodes:
    path = kubeconfig or environment.get("KUBECONFIG")
    if not path:
        return RememberedNodes()
    found = KubernetesNodes(Path(path))
    closing.callback(found.close)
    return found


def main() -> None:
    arguments = _arguments().parse_args()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    state = State(
        clusters={path: _cluster(path, arguments) for path in arguments.cluster},
        pace=Pace(**{name: getattr(arguments, f"{name}_seconds") for name in _PACES}),
    )
    with ExitStack() as closing:
        outside = Outside(
            clock=time.time,  # noqa: TID251 - the only place where the clock is read
            token=lambda: str(uuid.uuid4()),
            publish=sink(arguments.operations_topic, closing),
        )
        plane = ControlPlane(state, outside, _nodes(arguments.kubeconfig, os.environ, closing))
        plane.start()
        closing.callback(plane.stop)
        server = Server(plane, outside.token, arguments.port)
        closing.callback(server.stop)
        buttons = ButtonServer(partial(press, plane), arguments.buttons_port)
        closing.callback(buttons.stop)
        print(f"listening on 127.0.0.1:{server.port} buttons {buttons.url}", flush=True)
        while not stop.wait(SIGNAL_SECONDS):
            continue


if __name__ == "__main__":
    main()
