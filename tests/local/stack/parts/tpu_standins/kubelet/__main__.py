"""A sample part beside the cluster: says that it is ready, and does nothing."""

import signal
import sys

sys.stdout.write("ready\n")
sys.stdout.flush()
signal.pause()
