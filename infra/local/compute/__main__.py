"""`python -m infra.local.compute`: serves until SIGTERM; prints its addresses on one line."""

import argparse
import os
import signal
import tempfile
import threading
import time
import uuid
from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from pathlib import Path

from infra.local.clients.labels import HOST
from infra.local.clients.loopback import ButtonServer
from infra.local.compute.booting.cluster import KubeconfigServer
from infra.local.compute.booting.scripts import Scripts, Site
from infra.local.compute.buttons import press
from infra.local.compute.control_plane import ControlPlane
from infra.local.compute.metadata.server import MetadataServer
from infra.local.compute.server import Server
from infra.local.compute.state import Pace, State
from infra.local.compute.vms import Boot, ByMetadata, Idle, JoinedHosts, Joining
from infra.local.gke.audit import sink
from infra.local.gke.kubernetes_nodes import KubernetesNodes
from infra.local.timed import Outside

SIGNAL_SECONDS = 0.5
"""How late a signal is noticed at most: one that comes as the main thread begins to wait does not wake it."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.local.compute", description="A local Compute Engine.")
    parser.add_argument("--port", type=int, default=0, help="port of the REST API; 0: any free port")
    parser.add_argument("--buttons-port", type=int, default=0, help="port of the HTTP buttons; 0: any free port")
    parser.add_argument("--metadata-port", type=int, default=0, help="port of the VMs' metadata; 0: any free port")
    parser.add_argument("--project", action="append", required=True, metavar="P", help="may be repeated")
    parser.add_argument("--zones", required=True, metavar="Z,…", help="comma-separated, such as us-central1-c")
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="where VMs register as Nodes (default: KUBECONFIG, else nowhere)",
    )
    parser.add_argument(
        "--startup-script",
        type=Path,
        metavar="FILE",
        help="VMs whose metadata has this script run it in a mount namespace, and join as it says (default: none do)",
    )
    parser.add_argument(
        "--operations-topic", metavar="projects/P/topics/T", help="topic of the log sink (default: no sink)"
    )
    for pace in fields(Pace):
        parser.add_argument(f"--{pace.name}-seconds", type=float, default=pace.default)
    return parser


def _boot(arguments: argparse.Namespace, plane: ControlPlane, metadata: MetadataServer, closing: ExitStack) -> Boot:
    path = arguments.kubeconfig or os.environ.get("KUBECONFIG")
    if not path:
        return Idle()
    kubeconfig, pace = Path(path), plane.look()[0].pace
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


def main() -> None:
    arguments = _parser().parse_args()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    pace = Pace(**{each.name: getattr(arguments, f"{each.name}_seconds") for each in fields(Pace)})
    state = State(projects=frozenset(arguments.project), zones=frozenset(arguments.zones.split(",")), pace=pace)
    with ExitStack() as closing:
        outside = Outside(
            clock=time.time,  # noqa: TID251 - the only place where the clock is read
            token=lambda: str(uuid.uuid4()),
            publish=sink(arguments.operations_topic, closing),
        )
        plane = ControlPlane(state, outside)
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
        address = server.url.removeprefix("http://")
        print(f"listening on {address} buttons {buttons.url} metadata {metadata.url}", flush=True)
        while not stop.wait(SIGNAL_SECONDS):
            continue


if __name__ == "__main__":
    main()
