"""Asks the API server that kubectl reaches. Nothing is decided here."""

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

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
        asking = [*self.command, *flags, "get", "--raw", path, f"--request-timeout={TIMEOUT}s"]
        try:
            said = subprocess.run(  # noqa: S603 - kubectl of PATH, with paths of ours
                asking, capture_output=True, text=True, check=False, timeout=2 * TIMEOUT
            )
            if said.returncode == 0:
                return Found(json.loads(said.stdout))
        except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError) as failed:
            return Unreachable(f"{self.command[0]}: {failed}")
        if "(NotFound)" in said.stderr:
            return Missing()
        return Denied(said.stderr) if _DENIED.search(said.stderr) else Unreachable(said.stderr)
