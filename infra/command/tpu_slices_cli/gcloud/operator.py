"""Who runs the command, for records that say who did what: as gcloud and its libraries know it, asked by no call."""

from __future__ import annotations

import getpass
import json
import socket
from collections.abc import Mapping
from pathlib import Path

from tpu_slices_cli.gcloud.configuration import configured, folder

_LONGEST = 200


def operator(environment: Mapping[str, str], home: Path) -> str:
    """Return the account of the credentials, else gcloud's, else the user and machine.

    | told by                                                           | as                       |
    |-------------------------------------------------------------------|--------------------------|
    | the credentials: GOOGLE_APPLICATION_CREDENTIALS, or gcloud's file | `client_email`/`account` |
    | gcloud: CLOUDSDK_CORE_ACCOUNT, or its active configuration        | `account`                |
    | the machine                                                       | USER@HOST                |
    """
    named = environment.get("GOOGLE_APPLICATION_CREDENTIALS")
    credentials = Path(named) if named else folder(environment, home) / "application_default_credentials.json"
    found = (
        _of_credentials(credentials)
        or environment.get("CLOUDSDK_CORE_ACCOUNT")
        or configured("account", environment, home)
        or f"{getpass.getuser()}@{socket.gethostname()}"
    )
    return found[:_LONGEST]


def _of_credentials(file: Path) -> str:
    try:
        told = json.loads(file.read_text())
    except (OSError, ValueError):
        return ""
    return str(told.get("client_email") or told.get("account") or "") if isinstance(told, dict) else ""
