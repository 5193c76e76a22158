"""The targets of a secret are read anew each time, and an error in it quotes nothing of it."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.delivery.test_delivery import KEY
from tpu_slices.adapters.delivery.reach import may_reach
from tpu_slices.adapters.delivery.targets import Email, Slack, Webhook, read_targets
from tpu_slices.ports.errors import Temporary

MAIL: dict[str, Any] = {
    "kind": "email",
    "server": "smtp.example.com",
    "sender": "a@example.com",
    "to": ["b@example.com"],
}


def written(tmp_path: Path, text: str) -> str:
    (tmp_path / "targets.json").write_text(text)
    return str(tmp_path / "targets.json")


def test_each_kind_is_read(tmp_path: Path) -> None:
    targets = {
        "ml-slack": {"kind": "slack", "url": "https://hooks.slack.com/services/T/B/X"},
        "pager": {"kind": "webhook", "url": "https://example.com/tpu", "key": KEY},
        "ml-mail": MAIL,
    }
    found = read_targets(written(tmp_path, json.dumps(targets)))
    assert [type(each) for each in found.values()] == [Slack, Webhook, Email]
    assert not any(each.private for each in found.values())


@pytest.mark.parametrize(
    ("target", "where"),
    [
        (
            {"kind": "slack", "url": "http://hooks.slack.com/hidden"},
            "pager.slack.url: Value error, must begin",
        ),
        ({"kind": "slack", "url": "ftp://hidden"}, "pager.slack.url"),
        ({"kind": "slack"}, "pager.slack.url: Field required"),
        ({"kind": "webhook", "url": "https://hidden"}, "pager.webhook.key: Field required"),
        (
            {"kind": "webhook", "url": "https://hidden", "key": "hidden"},
            "pager.webhook.key: Value error, must",
        ),
        ({"kind": "sms", "url": "https://hidden"}, "pager"),
        ({**MAIL, "to": []}, "pager.email.to"),
        ({**MAIL, "sender": "hidden\n@example.com"}, "pager.email.sender"),
        ({**MAIL, "port": 25}, "pager.email.port"),
        ({**MAIL, "pass": "hidden"}, "pager.email.pass: Extra inputs are not permitted"),
    ],
)
def test_what_is_wrong_is_named_and_not_quoted(target: dict[str, Any], where: str, tmp_path: Path) -> None:
    with pytest.raises(Temporary) as wrong:
        read_targets(written(tmp_path, json.dumps({"pager": target})))
    assert str(wrong.value).startswith(f"the secret with targets is invalid: {where}")
    assert "hidden" not in str(wrong.value)


def test_without_a_secret_the_remedy_is_named(tmp_path: Path) -> None:
    with pytest.raises(Temporary, match="set the variable notification_targets"):
        read_targets("")
    with pytest.raises(Temporary, match="cannot be read: FileNotFoundError"):
        read_targets(str(tmp_path / "none"))
    with pytest.raises(Temporary, match="is invalid: the whole"):
        read_targets(written(tmp_path, "{"))


@pytest.mark.parametrize(
    ("address", "reached", "if_private"),
    [
        ("8.8.8.8", True, True),
        ("2001:4860:4860::8888", True, True),
        ("10.0.0.2", False, True),
        ("192.168.1.1", False, True),
        ("127.0.0.1", False, True),
        ("::1", False, True),
        ("fd00::1", False, True),
        ("169.254.169.254", False, False),
        ("::ffff:169.254.169.254", False, False),
        ("fd20:ce::254", False, False),
        ("fe80::1", False, False),
        ("224.0.0.1", False, False),
        ("0.0.0.0", False, False),
        ("::ffff:10.0.0.2", False, True),
    ],
)
def test_which_addresses_are_reached(address: str, *, reached: bool, if_private: bool) -> None:
    found = ipaddress.ip_address(address)
    assert (may_reach(found, private=False), may_reach(found, private=True)) == (reached, if_private)
