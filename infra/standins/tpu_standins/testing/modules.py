"""Python in other processes, which finds the modules that this one finds."""

import os
import sys
from collections.abc import Mapping

PYTHON: Mapping[str, str] = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"}
"""The environment of such a process, beside what it inherits."""
