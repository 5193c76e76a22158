"""Notifications reach webhooks, Slack and mailboxes over TLS, and name no secret where they fail."""

from __future__ import annotations

import base64
import email
import hashlib
import hmac
import json
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.delivery.servers import Got, mail_server, trusting, web_server
from tests.builders import NOW, an_owner
from tpu_slices.adapters.delivery.delivering import TargetDelivery
from tpu_slices.domain.model.notifications import Notification, Occasion
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices_simulator.fakes.clock import FakeClock

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

KEY = f"whsec_{base64.b64encode(b'k' * 32).decode()}"
SENT = Notification(
    id="demo.uid-llama.pager.waiting.1772366400",
    target="pager",
    occasion=Occasion.WAITING,
    cluster=ClusterId("demo"),
    owner=an_owner("llama"),
    since=NOW,
    at=NOW,
    title="research/llama waits for slices",
    text="research/llama (JobSet) has waited for slices for 30 min: <!channel> & more.",
    details={"reason": "SlicesWaiting"},
)


def deliver(tmp_path: Path, **target: Any) -> None:
    file = tmp_path / "targets.json"
    file.write_text(json.dumps({"pager": {"private": True, **target}}))
    TargetDelivery(str(file), FakeClock(NOW), trusting()).deliver(SENT)


def webhook(got: Got, **changes: Any) -> dict[str, Any]:
    return {"kind": "webhook", "url": f"https://127.0.0.1:{got.port}/hook/secret-path?q=1", "key": KEY, **changes}


def mailbox(got: Got, **changes: Any) -> dict[str, Any]:
    to = {"sender": "tpu@example.com", "to": ["ml@example.com", "ops@example.com"]}
    access = {"user": "tpu", "password": "secret-password"}
    return {"kind": "email", "server": "127.0.0.1", "port": got.port, **to, **access, **changes}


def test_a_webhook_gets_json_that_is_signed_as_standard_webhooks_has_it(tmp_path: Path) -> None:
    with web_server() as got:
        deliver(tmp_path, **webhook(got))
    [body], [headers] = got.bodies, got.headers
    assert got.paths == ["/hook/secret-path?q=1"]
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(b"k" * 32, content, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert (headers["webhook-id"], headers["content-type"]) == (SENT.id, "application/json")
    document = json.loads(body)
    assert (document["type"], document["timestamp"]) == ("workload.waiting", NOW.isoformat())
    named = {key: document["data"][key] for key in ("cluster", "namespace", "name", "kind", "reason")}
    assert named == {
        "cluster": "demo",
        "namespace": "research",
        "name": "llama",
        "kind": "JobSet",
        "reason": "SlicesWaiting",
    }


def test_slack_gets_a_text_in_which_nothing_mentions_or_links(tmp_path: Path) -> None:
    with web_server() as got:
        deliver(tmp_path, kind="slack", url=f"https://127.0.0.1:{got.port}/services/secret")
    assert json.loads(got.bodies[0]) == {
        "text": "research/llama waits for slices\nresearch/llama (JobSet) has waited for slices for 30 min: "
        "&lt;!channel&gt; &amp; more.\nCluster demo, as of 2026-03-01 12:00 UTC."
    }


@pytest.mark.parametrize("tls", ["implicit", "starttls"])
def test_a_mail_is_submitted_over_tls_with_an_id_by_which_it_is_known(tls: str, tmp_path: Path) -> None:
    with mail_server(implicit=tls == "implicit") as got:
        deliver(tmp_path, **mailbox(got, tls=tls))
    message = email.message_from_bytes(got.bodies[0], policy=default)
    assert message["subject"] == "[demo] research/llama waits for slices"
    assert message["message-id"] == f"<{SENT.id}@example.com>"
    assert (message["from"], message["to"]) == ("tpu@example.com", "ml@example.com, ops@example.com")
    verbs = [line.split(" ")[0].upper() for line in got.lines]
    assert verbs.count("RCPT") == 2
    assert tls == "implicit" or verbs.index("STARTTLS") < verbs.index("AUTH")


@pytest.mark.parametrize(
    ("status", "error"),
    [(429, Temporary), (500, Temporary), (503, Temporary), (408, Temporary), (404, Permanent), (410, Permanent)],
)
def test_a_target_that_may_take_it_later_is_told_from_one_that_never_will(
    status: int, error: type[Exception], tmp_path: Path
) -> None:
    with web_server(status) as got, pytest.raises(error, match=f"^it answers {status}$"):
        deliver(tmp_path, **webhook(got))


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    with web_server(307) as got, pytest.raises(Permanent, match="it answers 307"):
        deliver(tmp_path, **webhook(got))
    assert got.paths == ["/hook/secret-path?q=1"]


def test_a_target_that_is_down_may_take_it_later(tmp_path: Path) -> None:
    with web_server() as got:
        pass
    for target in (webhook(got), mailbox(got)):
        with pytest.raises(Temporary) as down:
            deliver(tmp_path, **target)
        assert "secret" not in str(down.value)


@pytest.mark.parametrize(("code", "error"), [(550, Permanent), (451, Temporary)])
@pytest.mark.parametrize("verb", ["AUTH", "MAIL", "RCPT", "DATA"])
def test_what_a_mail_server_refuses_is_not_quoted(verb: str, code: int, error: type[Exception], tmp_path: Path) -> None:
    with (
        mail_server(implicit=True, refuses=verb, refused_with=code) as got,
        pytest.raises(error, match=f"^its server answers {code}$"),
    ):
        deliver(tmp_path, **mailbox(got, tls="implicit"))


def test_a_server_that_nobody_vouches_for_gets_nothing(tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    with web_server() as got:
        file.write_text(json.dumps({"pager": {"private": True, **webhook(got)}}))
        with pytest.raises(Temporary, match="SSLCertVerificationError"):
            TargetDelivery(str(file), FakeClock(NOW)).deliver(SENT)
    assert got.bodies == []


def test_a_private_address_is_reached_only_if_the_target_says_so(tmp_path: Path) -> None:
    with web_server() as got, pytest.raises(Permanent, match="its address is private"):
        deliver(tmp_path, **webhook(got, private=False))
    assert got.bodies == []
