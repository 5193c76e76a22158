"""What tests need on a machine: programs, and the Pub/Sub and Firestore emulators.

The emulators are started once per session, when the first test asks for them.

A test that asks has the marks `emulators` and `enable_socket`, and uses `project_id` as its project: projects are
isolated from each other, so nothing is ever cleaned up.
"""

import os
import uuid
from collections.abc import Iterator

import pytest

from tpu_standins import emulators
from tpu_standins.controllers.catalogue import CONTROLLERS, built, complete
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.kubernetes.programs import find as find_programs
from tpu_standins.kubernetes.versions import pinned
from tpu_standins.ports import free_ports
from tpu_standins.prerequisites import Tools, explained, find, missing, require
from tpu_standins.processes import Processes


@pytest.fixture(scope="session")
def tools() -> Tools:
    """What the local stack needs; a test that needs it fails where it is missing, it is never skipped."""
    found = find(os.environ)
    if lacking := missing(found):
        pytest.fail(explained(lacking), pytrace=False)
    return require(found)


@pytest.fixture(scope="session")
def programs() -> Programs:
    """The programs of a control plane. Without them the tests that need them are skipped, but in CI they fail."""
    found = find_programs(os.environ, pinned())
    lacking = [str(each) for each in CONTROLLERS if not complete(built(each, os.environ))]
    if found.programs and not lacking:
        return found.programs
    wanted = ", ".join([f"a control plane of Kubernetes {pinned()}", *lacking])
    why = "; ".join([f"not built: {wanted}: make kubernetes", *found.remarks])
    if os.environ.get("CI") == "true":
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


@pytest.fixture(scope="session")
def emulator_processes(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    logs = tmp_path_factory.mktemp("emulator-logs")
    with Processes(setpriv=tools.setpriv, logs=logs, environment=os.environ) as processes:
        yield processes


@pytest.fixture(scope="session")
def pubsub_emulator(tools: Tools, emulator_processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> str:
    """host:port, the value of PUBSUB_EMULATOR_HOST."""
    (port,) = free_ports(1)
    folder = tmp_path_factory.mktemp("pubsub")
    emulator_processes.wait_until_ready(*emulator_processes.start(emulators.pubsub(tools, port, folder)))
    return f"127.0.0.1:{port}"


@pytest.fixture(scope="session")
def firestore_emulator(tools: Tools, emulator_processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> str:
    """host:port, the value of FIRESTORE_EMULATOR_HOST."""
    (port,) = free_ports(1)
    folder = tmp_path_factory.mktemp("firestore")
    emulator_processes.wait_until_ready(*emulator_processes.start(emulators.firestore(tools, port, folder)))
    return f"127.0.0.1:{port}"


@pytest.fixture
def project_id() -> str:
    """A project no other test uses."""
    return f"test-{uuid.uuid4().hex[:16]}"
