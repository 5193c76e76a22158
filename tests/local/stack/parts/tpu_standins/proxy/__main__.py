"""A sample proxy: writes the kubeconfig that it was given, prints its addresses, and serves nothing."""

import argparse
import signal
import socket
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
for each in ("kubeconfig", "write", "port", "buttons-port"):
    parser.add_argument(f"--{each}", required=True)
asked = parser.parse_args()
Path(asked.write).write_text(Path(asked.kubeconfig).read_text())
listening = [socket.create_server(("127.0.0.1", int(port))) for port in (asked.port, asked.buttons_port)]
sys.stdout.write(f"listening on https://127.0.0.1:{asked.port} buttons http://127.0.0.1:{asked.buttons_port}\n")
signal.pause()
