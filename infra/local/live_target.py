"""`--gke live`: which GKE cluster the stack's functions create node pools in, as whom, and up to how many chips."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CAP = "chips_per_cluster"
_CONTEXT = re.compile(r"gke_(?P<project>[^_]+)_(?P<location>[^_]+)_(?P<name>[^_]+)")
_IMPERSONATED = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{account}:generateAccessToken"


class NotLive(Exception):
    """GKE is not used; says why, for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for on the command line. `settings`: a file as in infra/clusters; None: the defaults."""

    project: str
    account: str
    chips: int
    settings: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A cluster `projects/P/locations/L/clusters/C`, the service account to act as, and the most chips at a time."""

    path: str
    account: str
    chips: int
    settings: Mapping[str, Any]
    """The settings document of the cluster."""

    @property
    def list_command(self) -> str:
        """The command that lists what was created and is still there."""
        _, project, _, location, _, name = self.path.split("/")
        where = f"--cluster {name} --location {location} --project {project}"
        return f"gcloud container node-pools list {where} --filter name~^tpu-"


def of_context(context: str, wanted: Wanted) -> Live:
    """Return the cluster of a kubeconfig's context, as gcloud names contexts. Raises NotLive."""
    known = _CONTEXT.fullmatch(context)
    command = f"gcloud container clusters get-credentials NAME --location LOCATION --project {wanted.project}"
    if known is None:
        raise NotLive(
            f'The context "{context}" does not tell which GKE cluster it is: let gcloud write it.\n  {command}'
        )
    if known["project"] != wanted.project:
        raise NotLive(f"The context {context} is of a cluster in {known['project']}, not in {wanted.project}.")
    path = f"projects/{known['project']}/locations/{known['location']}/clusters/{known['name']}"
    return Live(
        path=path,
        account=wanted.account,
        chips=wanted.chips,
        settings=capped(_read(wanted.settings), path, wanted.chips),
    )


def capped(settings: Mapping[str, Any], path: str, chips: int) -> dict[str, Any]:
    """Return settings that let the cluster hold so many chips at most. Raises NotLive: they are of another one."""
    if settings.get("path", path) != path:
        raise NotLive(f"The settings are of {settings['path']}, the context is of {path}.")
    policy = settings.get("policy") or {}
    allowed = policy.get(CAP)
    return {**settings, "path": path, "policy": {**policy, CAP: min(allowed or chips, chips)}}


def impersonating(account: str, source: Mapping[str, Any]) -> dict[str, Any]:
    """Return credentials, as Google's libraries read them from a file, that act as an account by those of a user.

    Source: google.auth.impersonated_credentials.Credentials.from_impersonated_service_account_info.
    """
    return {
        "type": "impersonated_service_account",
        "service_account_impersonation_url": _IMPERSONATED.format(account=account),
        "source_credentials": dict(source),
        "delegates": [],
    }


def source_of(file: Path) -> dict[str, Any]:
    """Return the user's own application default credentials. Raises NotLive."""
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise NotLive(
            f"{file} has no credentials to impersonate the account with: gcloud auth application-default login"
        ) from problem
    source: dict[str, Any] = found.get("source_credentials", found)
    return source


def _read(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        read = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as problem:
        raise NotLive(f"{file} cannot be read: {problem}") from problem
    if not isinstance(read, dict):
        raise NotLive(f"{file} has no settings: see infra/clusters/example-project")
    return read
