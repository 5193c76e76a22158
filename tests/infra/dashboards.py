"""Dashboards as Cloud Monitoring's API has them: what Terraform reads there is compared with what is written here."""

from typing import Any

from google.cloud.monitoring_dashboard_v1 import Dashboard
from google.protobuf.json_format import MessageToDict, ParseDict


def as_answered(dashboard: dict[str, Any]) -> dict[str, Any]:
    """Return a dashboard as the API answers it. Raises ParseError for a field or a value of an enum that it has not.

    Zeros and empty lists are left out of the answer: written, each would be a change in every plan.
    """
    found: dict[str, Any] = MessageToDict(ParseDict(dashboard, Dashboard.pb()()))
    return found
