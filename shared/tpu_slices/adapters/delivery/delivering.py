"""The port `Delivery`, on the targets of a file that is read anew each time: a secret that is rotated counts at once.

A webhook is signed as Standard Webhooks has it (https://github.com/standard-webhooks/standard-webhooks): by HMAC-SHA256
of id, time and body.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
from email.message import EmailMessage
from email.utils import format_datetime

from tpu_slices.adapters.delivery import mail, web
from tpu_slices.adapters.delivery.targets import Email, Slack, Webhook, key_of, read_targets
from tpu_slices.domain.model.notifications import Notification
from tpu_slices.ports.clock import Clock
from tpu_slices.ports.errors import Temporary


class TargetDelivery:
    def __init__(self, path: str, clock: Clock, context: ssl.SSLContext | None = None) -> None:
        """`path`: of the targets' file; empty: there is none. `context`: whom to trust, if not whom everybody does."""
        self._path, self._clock = path, clock
        self._context = context or ssl.create_default_context()

    def deliver(self, notification: Notification) -> None:
        target = read_targets(self._path).get(notification.target)
        match target:
            case None:
                raise Temporary("the secret with targets has none of this name: add it there")
            case Webhook():
                data = json.dumps(document(notification)).encode()
                headers = signed(notification.id, int(self._clock.now().timestamp()), data, target.key)
                web.post(target.url, data, headers, self._context, private=target.private)
            case Slack():
                data = json.dumps({"text": for_slack(notification)}).encode()
                web.post(target.url, data, {}, self._context, private=target.private)
            case Email():
                mail.send(as_mail(notification, target), target, self._context)


def document(notification: Notification) -> dict[str, object]:
    """Return what a webhook gets."""
    owner = notification.owner
    about = {"kind": owner.kind, "namespace": owner.namespace, "name": owner.name, "uid": owner.uid}
    return {
        "type": f"workload.{notification.occasion}",
        "timestamp": notification.at.isoformat(),
        "data": {
            "cluster": notification.cluster,
            **about,
            "since": notification.since.isoformat(),
            "title": notification.title,
            "text": notification.text,
            **notification.details,
        },
    }


def signed(id_: str, at: int, data: bytes, key: str) -> dict[str, str]:
    """Return the headers by which a target knows who sent this, and whether it has it already."""
    content = f"{id_}.{at}.".encode() + data
    signature = base64.b64encode(hmac.digest(key_of(key), content, hashlib.sha256)).decode()
    return {"webhook-id": id_, "webhook-timestamp": str(at), "webhook-signature": f"v1,{signature}"}


def for_slack(notification: Notification) -> str:
    """Return the text, in which Slack finds no link and no mention that the notification did not mean."""
    whole = f"{notification.title}\n{in_words(notification)}"
    return whole.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def as_mail(notification: Notification, target: Email) -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = f"[{notification.cluster}] {notification.title}"
    message["From"], message["To"] = target.sender, ", ".join(target.to)
    message["Date"] = format_datetime(notification.at)
    message["Message-ID"] = f"<{notification.id}@{target.sender.rpartition('@')[2]}>"
    message.set_content(f"{in_words(notification)}\n")
    return message


def in_words(notification: Notification) -> str:
    """Return the text with where and when it was so: it may come late."""
    return f"{notification.text}\nCluster {notification.cluster}, as of {notification.at:%Y-%m-%d %H:%M} UTC."
