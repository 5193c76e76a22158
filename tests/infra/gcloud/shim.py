"""What `gcloud` is on the PATH of a test: sends the command to served.py, with its streams. Started without site."""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.environ["GCLOUD_SERVED_AT"])
    command = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()])  # noqa: PTH109 - pathlib takes its time to load
    socket.send_fds(connection, [command.encode() + b"\n"], [0, 1, 2])
    sys.exit(int(connection.makefile().readline()))
