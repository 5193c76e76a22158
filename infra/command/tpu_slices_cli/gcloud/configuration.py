"""What gcloud's configuration says, read from its files: gcloud itself is not run, which takes a second."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Project:
    """A Google Cloud project, and what named it."""

    id: str
    named_by: str

    def __str__(self) -> str:
        return f"project {self.id} (by {self.named_by}), Firestore database (default)"


def project_of(option: str | None, environment: Mapping[str, str], home: Path) -> Project | None:
    """Return the project that is asked; None: nothing names one.

    | the first that names it                                    |
    |------------------------------------------------------------|
    | the option `--project`                                     |
    | GOOGLE_CLOUD_PROJECT                                       |
    | CLOUDSDK_CORE_PROJECT                                      |
    | `project` in gcloud's active configuration                 |
    """
    active = active_configuration(environment, home)
    named = (
        (option, "--project"),
        (environment.get("GOOGLE_CLOUD_PROJECT"), "GOOGLE_CLOUD_PROJECT"),
        (environment.get("CLOUDSDK_CORE_PROJECT"), "CLOUDSDK_CORE_PROJECT"),
        (configured("project", environment, home), f"gcloud's configuration {active}"),
    )
    return next((Project(id_, by) for id_, by in named if id_), None)


def folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return the folder of gcloud's configurations and credentials."""
    return Path(environment.get("CLOUDSDK_CONFIG") or home / ".config" / "gcloud")


def active_configuration(environment: Mapping[str, str], home: Path) -> str:
    """Return the name of gcloud's active configuration; empty: it has none."""
    if named := environment.get("CLOUDSDK_ACTIVE_CONFIG_NAME"):
        return named
    try:
        return (folder(environment, home) / "active_config").read_text().strip()
    except (OSError, UnicodeError):
        return ""


def configured(name: str, environment: Mapping[str, str], home: Path) -> str:
    """Return a property of the section `core` of gcloud's active configuration; empty: it is not set."""
    active = active_configuration(environment, home)
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string((folder(environment, home) / "configurations" / f"config_{active}").read_text())
    except (OSError, UnicodeError, configparser.Error):
        return ""
    return parser.get("core", name, fallback="")
