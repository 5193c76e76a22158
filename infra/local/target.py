"""A target of notifications on this machine, called `local`: it prints what the stack's clusters tell it.

python -m infra.local.target PORT
"""

import base64
import json
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from infra.local.addresses import Addresses
from infra.local.plan import REPOSITORY, Plan
from tpu_standins.kubeconfig import write_private
from tpu_standins.ports import free_ports
from tpu_standins.processes import Child, Processes

HOST = "127.0.0.1"


def started(plan: Plan, addresses: Addresses, processes: Processes) -> Child:
    """Start the target, and write the file by which `notify` finds it; it may not be ready yet."""
    (port,) = free_ports(1)
    key = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
    target = {"kind": "webhook", "url": f"http://{HOST}:{port}/", "key": key, "private": True}
    write_private(addresses.targets, json.dumps({"local": target}))
    own = Plan(root=REPOSITORY, state=plan.state).module(
        "target", ("infra.local.target", str(port)), f"listening on {HOST}:{port}", addresses
    )
    (child,) = processes.start(own)
    return child


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["content-length"])))
        print(f"{said['type']}: {said['data']['text']}", flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing of a request but what it says."""


def main() -> None:
    port = int(sys.argv[1])
    server = ThreadingHTTPServer((HOST, port), _Handler)
    print(f"listening on {HOST}:{port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
