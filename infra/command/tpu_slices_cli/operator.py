"""Who runs the command, for records that say who did what: as gcloud and its libraries know it, asked by no call."""

from __future__ import annotations

import configparser
import getpass
import json
import socket
from collections.abc import Mapping
from pathlib import Path

_LONGEST = 200


def operator(environment: Mapping[str, str], home: Path) -> str:
    """Return the account of the credentials, else gcloud's, else the user and machine.

    | told by                                                           | as                       |
    |-------------------------------------------------------------------|--------------------------|
    | the credentials: GOOGLE_APPLICATION_CREDENTIALS, or gcloud's file | `client_email`/`account` |
    | gcloud: CLOUDSDK_CORE_ACCOUNT, or its active configuration        | `account`                |
    | the machine                                                       | USER@HOST                |
    """
    gcloud = Path(environment.get("CLOUDSDK_CONFIG") or home / ".config" / "gcloud")
    credentials = environment.get("GOOGLE_APPLICATION_CREDENTIALS")
    found = (
        _of_credentials(Path(credentials) if credentials else gcloud / "application_default_credentials.json")
        or environment.get("CLOUDSDK_CORE_ACCOUNT")
        or _of_gcloud(gcloud, environment.get("CLOUDSDK_ACTIVE_CONFIG_NAME"))
        or f"{getpass.getuser()}@{socket.gethostname()}"
    )
    return found[:_LONGEST]


def _of_credentials(file: Path) -> str:
    try:
        told = json.loads(file.read_text())
    except (OSError, ValueError):
        return ""
    return str(told.get("client_email") or told.get("account") or "") if isinstance(told, dict) else ""


def _of_gcloud(folder: Path, named: str | None) -> str:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        active = named or (folder / "active_config").read_text().strip()
        parser.read_string((folder / "configurations" / f"config_{active}").read_text())
    except (OSError, UnicodeError, configparser.Error):
        return ""
    return parser.get("core", "account", fallback="")
