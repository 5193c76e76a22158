"""A sample cluster: prints its address, accepts every apply request, and issues the same token to every caller.

It has the policies by which pods are pinned, so that no webhook is run, and serves every kind that is applied, as it is
asked for the first object of it.
"""

import argparse
import json
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Handler(SimpleHTTPRequestHandler):
    def _take(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/token"):
            sent["status"] = {"token": "a token", "expirationTimestamp": "2100-01-01T00:00:00Z"}
        self._answer(201, sent)

    def do_GET(self) -> None:
        if self.path == "/apis/admissionregistration.k8s.io/v1":
            self._answer(200, {"resources": [{"name": "mutatingadmissionpolicies"}]})
        elif self.path.endswith("?limit=1"):
            self._answer(200, {"items": []})
        else:
            super().do_GET()

    def _answer(self, code: int, body: Any) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    do_PATCH = do_POST = _take  # noqa: N815 - BaseHTTPRequestHandler names them so


parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--kubeconfig", type=Path, required=True)
asked = parser.parse_args()
server = ThreadingHTTPServer(("127.0.0.1", asked.port), Handler)
address = f"http://127.0.0.1:{asked.port}"
one = {
    "clusters": [{"name": "sample", "cluster": {"server": address}}],
    "contexts": [{"name": "sample", "context": {"cluster": "sample", "user": "sample"}}],
    "users": [{"name": "sample", "user": {}}],
    "current-context": "sample",
}
asked.kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **one}))
sys.stdout.write(f"listening on https://127.0.0.1:{asked.port}\n")
server.serve_forever()
