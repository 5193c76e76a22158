"""Google's REST APIs and an API server: they answer what a test has put there, and 404 to all else."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.infra.loopback import NOT_FOUND, Request, Response, refusal, serving

SERVICES = (
    "artifactregistry", "cloudquotas", "cloudresourcemanager", "compute", "container", "firestore", "iam",
    "monitoring", "orgpolicy", "serviceusage", "storage",
)  # fmt: skip


@dataclass
class Cloud:
    """`documents` by path, without the query; a whole number instead of a document is a status to refuse with."""

    url: str = ""
    documents: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    bodies: dict[str, Any] = field(default_factory=dict)
    """What was sent, by path."""

    @property
    def hosts(self) -> dict[str, str]:
        return dict.fromkeys(SERVICES, self.url)

    def answer(self, request: Request) -> Response:
        self.asked.append(f"{request.method} {request.path}")
        if request.data:
            self.bodies[request.path] = request.body
        document = self.documents.get(request.path, NOT_FOUND)
        return refusal(document) if isinstance(document, int) else Response(document)


@contextmanager
def served() -> Iterator[Cloud]:
    cloud = Cloud()
    with serving(cloud.answer) as cloud.url:
        yield cloud
