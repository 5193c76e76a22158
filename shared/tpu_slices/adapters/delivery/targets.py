"""The targets of notifications with their addresses and secrets, as the file of a mounted secret has them, in JSON.

    {"ml-slack": {"kind": "slack", "url": "https://hooks.slack.com/services/..."},
     "pager": {"kind": "webhook", "url": "https://example.com/tpu", "key": "whsec_..."},
     "ml-mail": {"kind": "email", "server": "smtp.example.com", "user": "...", "password": "...",
                 "sender": "tpu@example.com", "to": ["ml@example.com"]}}

No error quotes what is written there.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tpu_slices.ports.errors import Temporary

KEY_PREFIX = "whsec_"
LEAST_KEY = 24
"""Bytes of a key, at least, as Standard Webhooks has it."""


def _key(value: str) -> str:
    if len(key_of(value)) < LEAST_KEY:
        raise ValueError(f"must be {KEY_PREFIX} and at least {LEAST_KEY} bytes in base64")
    return value


def _url(value: str) -> str:
    if not value.startswith(("https://", "http://127.0.0.1:")):
        raise ValueError("must begin with https://")
    return value


_Key = Annotated[str, AfterValidator(_key)]
_Url = Annotated[str, AfterValidator(_url)]
_Address = Annotated[str, Field(pattern=r"^[^@\s,<>]+@[^@\s,<>]+$")]


class _Target(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    private: bool = False
    """Whether it may be at an address of a private network; never that of a metadata server."""


class Webhook(_Target):
    kind: Literal["webhook"]
    url: _Url
    key: _Key
    """By which it is signed."""


class Slack(_Target):
    kind: Literal["slack"]
    url: _Url


class Email(_Target):
    kind: Literal["email"]
    server: Annotated[str, Field(min_length=1)]
    port: Literal[465, 587] | Annotated[int, Field(ge=1024, le=65535)] = 587
    tls: Literal["starttls", "implicit"] = "starttls"
    user: str = ""
    """Empty: the server asks for none."""
    password: str = ""
    sender: _Address
    to: Annotated[tuple[_Address, ...], Field(min_length=1, max_length=20)]


Target = Annotated[Webhook | Slack | Email, Field(discriminator="kind")]
_TARGETS: TypeAdapter[dict[str, Target]] = TypeAdapter(dict[str, Target])


def read_targets(path: str) -> Mapping[str, Webhook | Slack | Email]:
    """Return the targets of a file. Temporary: there is none, or it cannot be read; somebody may correct it."""
    if not path:
        raise Temporary("no secret with targets is mounted: set the variable notification_targets of Terraform")
    try:
        return _TARGETS.validate_json(Path(path).read_bytes())
    except OSError as error:
        raise Temporary(f"the secret with targets cannot be read: {type(error).__name__}") from None
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise Temporary(f"the secret with targets is invalid: {where}: {first['msg']}") from None


def key_of(written: str) -> bytes:
    """Return the bytes of a key; empty if it is none."""
    try:
        return base64.b64decode(written.removeprefix(KEY_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return b""
