"""A sample GKE: prints its addresses once the cluster responds, and serves nothing."""

import argparse
import signal
import socket
import sys
from urllib.request import urlopen

parser = argparse.ArgumentParser()
for each in ("port", "buttons-port", "cluster", "kubernetes", "operations-topic"):
    parser.add_argument(f"--{each}", required=True)
asked = parser.parse_args()
urlopen(asked.kubernetes).close()
listening = [socket.create_server(("127.0.0.1", int(port))) for port in (asked.port, asked.buttons_port)]
sys.stdout.write(f"listening on 127.0.0.1:{asked.port} buttons http://127.0.0.1:{asked.buttons_port}\n")
signal.pause()
