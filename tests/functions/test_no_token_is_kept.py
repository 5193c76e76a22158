"""A bootstrap token passes through receive and reconcile, and stays nowhere: in no log, rejection, record or error."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.builders import CLUSTER, a_token
from tests.flows.test_joining import LATE, a_world
from tests.functions.test_handlers import an_event
from tests.fuzz.trees import edited
from tests.world import World
from tpu_slices.adapters import logs
from tpu_slices.app import handlers
from tpu_slices.app.handlers import Event
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.messages import Message, encode_fact, encode_join_request
from tpu_slices_simulator.fakes.backend import Trouble, Verb

TOKEN = a_token().token
FACT, REQUEST = encode_fact(a_token()), encode_join_request(CLUSTER, a_token())
BROKEN: dict[str, Callable[[Message], Message]] = {
    "whole": lambda message: message,
    "of another kind": lambda message: with_attributes(message, kind="Heartbeat"),
    "of no kind": lambda message: with_attributes(message, kind=""),
    "of another version": lambda message: with_attributes(message, version="1"),
    "cut off": lambda message: Message(message.data[:-1], message.attributes),
    "of the wrong type": lambda message: Message(
        message.data.replace(b'"attempt":1', b'"attempt":"x"'), message.attributes
    ),
    "named by it": lambda message: with_attributes(message, kind=TOKEN),
}


def with_attributes(message: Message, **changes: str) -> Message:
    return Message(message.data, {**message.attributes, **changes})


def kept(world: World) -> str:
    """Return all that is stored, whatever it is."""
    records = [world.store.document(place) for place in world.store.places()]
    return repr((records, world.store.rejections.values(), world.publisher.updates, world.publisher.questions))


def handled(event: Event, world: World, handle: Callable[[Event, Any], None]) -> str:
    """Return what is logged while an event is handled, and what is raised."""
    try:
        handle(event, world.deps)
    except Temporary as error:
        return f"{error!r} {error.__cause__!r} {error.__context__!r}"
    return ""


@pytest.fixture(autouse=True)
def log_lines() -> Any:
    """Let log lines be written as in production."""
    logs.configure("demo-project", "1")
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("how", BROKEN)
def test_receive_keeps_no_token(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    world = a_world()
    raised = handled(an_event("facts-demo", BROKEN[how](FACT)), world, handlers.handle_receive)
    assert TOKEN not in raised + kept(world) + capsys.readouterr().out
    assert bool(world.publisher.joins) is (how == "whole")


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("trouble", ["none", "refused", "unavailable", "forbidden"])
def test_reconcile_keeps_no_token(how: str, trouble: str, capsys: pytest.CaptureFixture[str]) -> None:
    world = a_world()
    if trouble == "refused":
        world.backend.refuses_joins = LATE
    elif trouble != "none":
        world.backend.trouble(Trouble[trouble.upper()], Verb.JOIN)
    raised = handled(an_event("requests-demo", BROKEN[how](REQUEST)), world, handlers.handle_reconcile)
    assert TOKEN not in raised + kept(world) + capsys.readouterr().out
    assert bool(world.backend.joins) is (how == "whole" and trouble == "none")


@pytest.mark.parametrize("missing", ["messageId", "publishTime", "attributes"])
def test_an_event_that_cannot_be_opened_is_kept_without_it(missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    world = a_world()
    event = an_event("facts-demo", FACT, **{missing: None if missing != "attributes" else 7})
    handlers.handle_receive(event, world.deps)
    [rejection] = world.store.rejections.values()
    assert "[token]" in rejection.data
    data = base64.b64encode(FACT.data).decode()
    assert all(run not in kept(world) for run in (TOKEN, data))
    assert TOKEN not in capsys.readouterr().out


@examples(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edited(st.just(json.loads(FACT.data))))
def test_whatever_a_relay_writes_no_token_is_kept(capsys: pytest.CaptureFixture[str], data: Any) -> None:
    world = a_world()
    message = Message(json.dumps(data).encode(), FACT.attributes)
    raised = handled(an_event("facts-demo", message), world, handlers.handle_receive)
    assert TOKEN not in raised + kept(world) + capsys.readouterr().out
