"""A sample relay: becomes ready if the settings were written before it was started."""

import os
import signal
import sys

from google.cloud import firestore

if not firestore.Client().document("clusters", os.environ["CLUSTER"]).get().exists:
    raise SystemExit("no settings")
sys.stdout.write("ready\n")
signal.pause()
