"""The file in which a running stack records its addresses for the commands that control it."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

_NAME = "stack.json"


class NothingUp(Exception):
    """No stack is running; the message says how to start one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """URLs of the parts that accept commands, the environment for Google's clients, and the folder of the logs."""

    control: str
    gke: str | None
    """Of the simulated GKE or Compute Engine; None: GKE is not simulated."""
    compute: bool = False
    """Whether it is Compute Engine."""
    faults: str
    cluster: str
    environment: dict[str, str]
    logs: str

    def write(self, state: Path) -> None:
        (state / _NAME).write_text(json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, state: Path) -> Self:
        """Return the note that a running stack wrote. Raise NothingUp if there is none."""
        try:
            return cls(**json.loads((state / _NAME).read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise NothingUp(f"no stack is running in {state}: start one with `make local`") from error


def forget(state: Path) -> None:
    (state / _NAME).unlink(missing_ok=True)
