"""A sample cluster: says where it listens, and answers nothing of use."""

import argparse
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--kubeconfig", type=Path, required=True)
asked = parser.parse_args()
server = ThreadingHTTPServer(("127.0.0.1", asked.port), SimpleHTTPRequestHandler)
asked.kubeconfig.write_text(f"http://127.0.0.1:{asked.port}")
sys.stdout.write(f"listening on http://127.0.0.1:{asked.port}\n")
server.serve_forever()
