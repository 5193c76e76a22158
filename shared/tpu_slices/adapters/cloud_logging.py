"""The metrics of log lines in Cloud Logging, asked over REST: each counts the lines that its filter matches."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

from tpu_slices.adapters import rest
from tpu_slices.ports.log_events import LogEvent

URL = "https://logging.googleapis.com"


class CloudLogging:
    """The port `LogLines` in one project.

    The filter is the metric's own, as it is deployed. `entries.list` may also end early without an entry; whoever asks
    asks again (google.logging.v2 ListLogEntriesResponse).
    """

    def __init__(self, session: Any, project: str, url: str = URL) -> None:
        self._session = session
        self._project = project
        self._url = url

    def counts(self, event: LogEvent, since: datetime) -> bool:
        name = quote(f"tpu-slices/{event}", safe="")
        metric = self._ask("GET", f"projects/{self._project}/metrics/{name}")
        wanted = {
            "resourceNames": [f"projects/{self._project}"],
            "filter": f'({metric.get("filter", "")}) AND timestamp>="{since.isoformat()}"',
            "orderBy": "timestamp desc",
            "pageSize": 1,
        }
        return bool(self._ask("POST", "entries:list", json=wanted).get("entries"))

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        return rest.ask(self._session, "Cloud Logging", method, f"{self._url}/v2/{path}", **more)
