"""Where a stack that is up can be found by the commands that are given to it."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

_NAME = "stack.json"


class NothingUp(Exception):
    """No stack is up; the text says how to change that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """URLs of what has buttons, the environment for Google's clients, and the folder of the logs."""

    control: str
    gke: str
    kubernetes: str
    cluster: str
    environment: dict[str, str]
    logs: str

    def write(self, state: Path) -> None:
        (state / _NAME).write_text(json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, state: Path) -> Self:
        """Read the note that a stack left; NothingUp where there is none."""
        try:
            return cls(**json.loads((state / _NAME).read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise NothingUp(f"no stack is up in {state}: start one with `make local`") from error


def forget(state: Path) -> None:
    (state / _NAME).unlink(missing_ok=True)
