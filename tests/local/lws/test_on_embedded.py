"""Where there are no StatefulSets, LeaderWorkerSets are not served, in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.clients.programs import run
from tests.local.served import serving

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def test_beside_the_embedded_api_server_it_does_not_start(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        said = run("lws", served.direct)
        assert (said.returncode, said.stderr) == (0, "")
        assert said.stdout == "LeaderWorkerSets need StatefulSets, which this API server has not: use a real one.\n"
