"""`python -m tpu_standins.gke`: serves until SIGTERM; prints its addresses on one line."""

import argparse
import uuid
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tpu_standins.cloud import program
from tpu_standins.cloud.kubernetes_nodes import KubernetesNodes
from tpu_standins.cloud.loopback import ButtonServer
from tpu_standins.cloud.nodes import Nodes, RememberedNodes
from tpu_standins.cloud.timed import Outside
from tpu_standins.gke.buttons import press
from tpu_standins.gke.control_plane import ControlPlane
from tpu_standins.gke.paths import parse_cluster
from tpu_standins.gke.server import Server
from tpu_standins.gke.state import Cluster, Pace, State


def _parser() -> argparse.ArgumentParser:
    parser = program.parser("tpu_standins.gke", "A local GKE control plane.", Pace)
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


def _nodes(kubeconfig: Path | None, closing: ExitStack) -> Nodes:
    if kubeconfig is None:
        return RememberedNodes()
    found = KubernetesNodes(kubeconfig)
    closing.callback(found.close)
    return found


def _begin(arguments: argparse.Namespace, outside: Outside, closing: ExitStack) -> str:
    clusters = {path: _cluster(path, arguments) for path in arguments.cluster}
    state = State(clusters=clusters, pace=program.paced(Pace, arguments))
    plane = ControlPlane(state, outside, _nodes(program.kubeconfig(arguments), closing))
    plane.start()
    closing.callback(plane.stop)
    server = Server(plane, outside.token, arguments.port)
    closing.callback(server.stop)
    buttons = ButtonServer(partial(press, plane), arguments.buttons_port)
    closing.callback(buttons.stop)
    return f"127.0.0.1:{server.port} buttons {buttons.url}"


if __name__ == "__main__":
    program.run(_parser().parse_args(), _begin)
