"""A sample GKE: prints its addresses once the cluster responds, and serves nothing."""

import argparse
import json
import signal
import socket
import sys
from pathlib import Path
from urllib.request import urlopen

parser = argparse.ArgumentParser()
for each in ("port", "buttons-port", "cluster", "kubeconfig", "operations-topic"):
    parser.add_argument(f"--{each}", required=True)
asked = parser.parse_args()
server = json.loads(Path(asked.kubeconfig).read_text())["clusters"][0]["cluster"]["server"]
urlopen(server).close()
listening = [socket.create_server(("127.0.0.1", int(port))) for port in (asked.port, asked.buttons_port)]
sys.stdout.write(f"listening on 127.0.0.1:{asked.port} buttons http://127.0.0.1:{asked.buttons_port}\n")
signal.pause()
