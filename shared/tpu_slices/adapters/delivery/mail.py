"""Submits a mail to a server, over TLS alone."""

from __future__ import annotations

import smtplib
import socket
import ssl
from email.message import EmailMessage

from tpu_slices.adapters.delivery.reach import TIMEOUT, connected
from tpu_slices.adapters.delivery.targets import Email
from tpu_slices.ports.errors import Permanent, Temporary

_FOR_GOOD = range(500, 600)


class _Server(smtplib.SMTP):
    def __init__(self, target: Email, context: ssl.SSLContext) -> None:
        self._target, self._context = target, context
        super().__init__(target.server, target.port, timeout=TIMEOUT)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:  # noqa: ARG002 - smtplib's own
        plain = connected(host, port, private=self._target.private)
        at_once = self._target.tls == "implicit"
        return self._context.wrap_socket(plain, server_hostname=host) if at_once else plain


def send(message: EmailMessage, target: Email, context: ssl.SSLContext) -> None:
    """Send a mail from the target's sender. Temporary: the server may take it later. Permanent: it refuses it."""
    try:
        with _Server(target, context) as server:
            if target.tls == "starttls":
                server.starttls(context=context)
            if target.user:
                server.login(target.user, target.password)
            server.send_message(message, target.sender, list(target.to))
    except smtplib.SMTPRecipientsRefused as refused:
        raise _error(max(code for code, _ in refused.recipients.values())) from None
    except smtplib.SMTPResponseException as refused:
        raise _error(refused.smtp_code) from None
    except (OSError, smtplib.SMTPException) as error:
        raise Temporary(f"its server does not answer: {type(error).__name__}") from None


def _error(code: int) -> Temporary | Permanent:
    return (Permanent if code in _FOR_GOOD else Temporary)(f"its server answers {code}")
