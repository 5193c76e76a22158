"""`python -m tpu_standins.compute`: serves until SIGTERM; prints its addresses on one line."""

import argparse
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tpu_standins.clients.labels import HOST
from tpu_standins.cloud import program
from tpu_standins.cloud.kubernetes_nodes import KubernetesNodes
from tpu_standins.cloud.loopback import ButtonServer
from tpu_standins.cloud.timed import Outside
from tpu_standins.compute.booting.cluster import KubeconfigServer
from tpu_standins.compute.booting.scripts import Scripts, Site
from tpu_standins.compute.buttons import press
from tpu_standins.compute.control_plane import ControlPlane
from tpu_standins.compute.metadata.server import MetadataServer
from tpu_standins.compute.server import Server
from tpu_standins.compute.state import Pace, State
from tpu_standins.compute.vms import Boot, ByMetadata, Idle, JoinedHosts, Joining


def _parser() -> argparse.ArgumentParser:
    parser = program.parser("tpu_standins.compute", "A local Compute Engine.", Pace)
    parser.add_argument("--metadata-port", type=int, default=0, help="port of the VMs' metadata; 0: any free port")
    parser.add_argument("--project", action="append", required=True, metavar="P", help="may be repeated")
    parser.add_argument("--zones", required=True, metavar="Z,…", help="comma-separated, such as us-central1-c")
    parser.add_argument(
        "--startup-script",
        type=Path,
        metavar="FILE",
        help="VMs whose metadata has this script run it in a mount namespace, and join as it says (default: none do)",
    )
    return parser


def _boot(arguments: argparse.Namespace, plane: ControlPlane, metadata: MetadataServer, closing: ExitStack) -> Boot:
    kubeconfig, pace = program.kubeconfig(arguments), plane.look()[0].pace
    if kubeconfig is None:
        return Idle()
    found = KubernetesNodes(kubeconfig, f"{HOST}=true")
    closing.callback(found.close)
    joining: Joining = ByMetadata(pace)
    if arguments.startup_script:
        site = Site(
            script=arguments.startup_script.read_text(encoding="utf-8"),
            folder=Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="tpu-hosts-"))),
            plane=plane,
            metadata=metadata,
            server=KubeconfigServer(kubeconfig),
        )
        joining = Scripts(site, joining)
    return JoinedHosts(found, pace, joining)


def _begin(arguments: argparse.Namespace, outside: Outside, closing: ExitStack) -> str:
    projects, zones = frozenset(arguments.project), frozenset(arguments.zones.split(","))
    plane = ControlPlane(State(projects=projects, zones=zones, pace=program.paced(Pace, arguments)), outside)
    metadata = MetadataServer(plane, arguments.metadata_port)
    closing.callback(metadata.stop)
    boot = _boot(arguments, plane, metadata, closing)
    closing.callback(boot.close)
    plane.boots(boot)
    plane.start()
    closing.callback(plane.stop)
    buttons = ButtonServer(partial(press, plane), arguments.buttons_port)
    closing.callback(buttons.stop)
    server = Server(plane, arguments.port)
    closing.callback(server.stop)
    return f"{server.url.removeprefix('http://')} buttons {buttons.url} metadata {metadata.url}"


if __name__ == "__main__":
    program.run(_parser().parse_args(), _begin)
