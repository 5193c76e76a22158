"""Asks the API server that kubectl reaches. Nothing is decided here."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from infra.preflight.answers import Answer, Denied, Found, Missing, Unreachable

TIMEOUT = 20
ANYBODY = ("--as", "system:anonymous", "--as-group", "system:unauthenticated")
"""Who asks without credentials, as a host does that joins."""
_DENIED = re.compile(r"\((Forbidden|Unauthorized)\)|must be logged in")


@dataclass(frozen=True, slots=True)
class Kubectl:
    """`command` is kubectl, with the flags that say which cluster is meant."""

    command: Sequence[str] = ("kubectl",)

    @classmethod
    def of(cls, context: str) -> Self:
        """Return the kubectl of PATH, with its current context unless one is named."""
        return cls(("kubectl", "--context", context) if context else ("kubectl",))

    def get(self, path: str, *flags: str) -> Answer:
        """Return what the API server says of a path; `flags` of kubectl, such as those of impersonation."""
        return self._said(*flags, "get", "--raw", path)

    def tried(self, new: Mapping[str, Any]) -> Answer:
        """Return a new object as it would be created; nothing is stored."""
        return self._said("create", "--dry-run=server", "--output=json", "--filename=-", given=json.dumps(dict(new)))

    def _said(self, *arguments: str, given: str = "") -> Answer:
        try:
            said = subprocess.run(  # noqa: S603 - kubectl of PATH, with arguments of ours
                [*self.command, *arguments, f"--request-timeout={TIMEOUT}s"],
                input=given,
                capture_output=True,
                text=True,
                check=False,
                timeout=2 * TIMEOUT,
            )
            if said.returncode == 0:
                return Found(json.loads(said.stdout))
        except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError) as failed:
            return Unreachable(f"{self.command[0]}: {failed}")
        if "(NotFound)" in said.stderr:
            return Missing()
        return Denied(said.stderr) if _DENIED.search(said.stderr) else Unreachable(said.stderr)
