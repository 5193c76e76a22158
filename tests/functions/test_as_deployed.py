"""The functions under functions-framework as Google Cloud runs it: with LOG_EXECUTION_ID, four threads, real pushes."""

from __future__ import annotations

import base64
import json
import logging
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import functions_framework
import pytest
import structlog
from flask import Flask
from flask.testing import FlaskClient

from tests.builders import leaders_wait
from tests.world import World
from tpu_slices.app import handlers
from tpu_slices.wire.messages import encode_fact

MAIN = Path(__file__).parents[2] / "functions" / "main.py"
PATH = "/projects/demo-project/topics/facts-demo"
THREADS = 4
"""So many requests does functions-framework serve at one time, in one process."""

Line = dict[str, Any]
Serve = Callable[[str], FlaskClient]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def serve(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Return how `receive` is served, over a world's doubles; the argument is the value of LOG_EXECUTION_ID."""
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "demo-project")

    def served(log_execution_id: str) -> FlaskClient:
        monkeypatch.setenv("LOG_EXECUTION_ID", log_execution_id)
        create_app: Callable[..., Flask] = functions_framework.create_app  # it has no annotations
        app = create_app(target="receive", source=str(MAIN), signature_type="cloudevent")
        monkeypatch.setattr(sys.modules["main"], "_intake_deps", lambda: world.deps)
        return app.test_client()

    before = logging.root.handlers[:], logging.root.level, _disabled()
    yield served
    structlog.reset_defaults()
    logging.root.handlers[:], logging.root.level, disabled = before
    for logger in _disabled() - disabled:  # with LOG_EXECUTION_ID, functions-framework disables those that exist
        logger.disabled = False


def _disabled() -> set[logging.Logger]:
    known = logging.root.manager.loggerDict.values()
    return {logger for logger in known if isinstance(logger, logging.Logger) and logger.disabled}


def pushed(**message: object) -> Line:
    """Return the body of a push, as Pub/Sub sends it."""
    return {
        "message": {"messageId": "17", "publishTime": "2026-03-01T12:00:00.000Z", **message},
        "subscription": "projects/demo-project/subscriptions/receive-demo",
    }


def a_fact() -> Line:
    fact = encode_fact(leaders_wait(0))
    return pushed(data=base64.b64encode(fact.data).decode(), attributes=dict(fact.attributes))


def lines(capsys: pytest.CaptureFixture[str]) -> list[Line]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_line_has_the_id_of_its_execution_beside_all_that_it_has_without(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    without = serve("false")
    assert without.post(PATH, json=a_fact()).status_code == 200
    (plain,) = lines(capsys)
    told = serve("true")
    headers = {"Function-Execution-Id": "execution-1"}
    assert told.post(PATH, json=a_fact(), headers=headers).status_code == 200
    (labelled,) = lines(capsys)
    assert labelled.pop("logging.googleapis.com/labels") == {"execution_id": "execution-1"}
    assert labelled.keys() == plain.keys()
    assert (labelled["event"], labelled["severity"]) == ("fact.received", "INFO")


def test_lines_of_executions_at_one_time_are_whole(
    serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, all_are_here = serve("true"), Barrier(THREADS)
    handle = handlers.handle_receive

    def together(*arguments: Any) -> None:
        all_are_here.wait()
        handle(*arguments)

    monkeypatch.setattr(handlers, "handle_receive", together)
    with ThreadPoolExecutor(THREADS) as threads:
        answers = [threads.submit(client.application.test_client().post, PATH, json=a_fact()) for _ in range(THREADS)]
        assert [each.result().status_code for each in answers] == [200] * THREADS
    assert [line["event"] for line in lines(capsys)] == ["fact.received"] * THREADS


@pytest.mark.parametrize(
    "attributes", [{}, {"attributes": None}, {"attributes": {}}], ids=["left out", "null", "empty"]
)
def test_a_push_without_attributes_is_kept_as_one_that_cannot_be_handled_and_not_sent_again(
    attributes: Line, serve: Serve, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    client = serve("true")
    assert client.post(PATH, json=pushed(data=a_fact()["message"]["data"], **attributes)).status_code == 200
    (line,) = lines(capsys)
    (kept,) = world.store.rejections.values()
    assert (line["event"], line["severity"]) == ("message.rejected", "ERROR")
    assert "kind" in repr(kept)
