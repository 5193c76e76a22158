"""What becomes of an object: when it is created, changed, and read again."""

from __future__ import annotations

import pytest

from tests.cluster.asking import LIVE, path
from tests.cluster.servers import POD, Cluster

pytestmark = LIVE


def test_an_object_is_created_read_and_listed(cluster: Cluster, namespace: str) -> None:
    made = cluster.api.create(path("pods", namespace), {"metadata": {"name": "one"}} | POD)
    assert cluster.api.read(path("pods", namespace, "one"))["metadata"]["uid"] == made["metadata"]["uid"]
    listed = cluster.api.read(path("pods", namespace))
    assert (listed["kind"], [each["metadata"]["name"] for each in listed["items"]]) == ("PodList", ["one"])


@pytest.mark.parametrize(("name", "code"), [("one", 409), ("Upper", 422)])
def test_a_name_that_is_taken_or_is_no_name_is_refused(cluster: Cluster, namespace: str, name: str, code: int) -> None:
    cluster.api.create(path("pods", namespace), {"metadata": {"name": "one"}} | POD)
    refused = cluster.api.post(path("pods", namespace), {"metadata": {"name": name}} | POD)
    assert refused.refusal == (code, {409: "AlreadyExists", 422: "Invalid"}[code])
