"""Where there are no StatefulSets, LeaderWorkerSets are not served, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
import pytest
from kubernetes.client import ApiClient

from infra.local.clients.api import Api
from infra.local.clients.errors import refusal
from infra.local.clients.objects import Object
from infra.local.lws.__main__ import run
from tests.local.embedded.world import World


class InProcess(Api):
    """The calls to an embedded API server without a network."""

    def __init__(self, world: World) -> None:
        super().__init__(ApiClient())
        self._world = world

    def call(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        *,
        query: Mapping[str, str] | None = None,
        media_type: str = "application/json",
    ) -> Object:
        answer = self._world.answer(method, path, body, media_type, **(query or {}))
        data = orjson.dumps(answer.body)
        if not 200 <= answer.code < 300:
            raise refusal(answer.code, data)
        found: Object = orjson.loads(data)
        return found


def test_beside_the_embedded_api_server_it_does_not_start(capsys: pytest.CaptureFixture[str]) -> None:
    run(InProcess(World()))
    assert capsys.readouterr().out == (
        "LeaderWorkerSets need StatefulSets, which this API server has not: use a real one.\n"
    )
