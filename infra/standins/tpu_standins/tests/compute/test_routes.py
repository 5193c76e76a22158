"""Requests that fit no method, no message or no place, and that each route is the client library's own."""

import re
from importlib import import_module

import pytest

from tpu_standins.compute.errors import Refusal
from tpu_standins.compute.routes import ROUTES, Route, understand
from tpu_standins.testing.compute import HERE, PROJECT, World, refused


@pytest.mark.parametrize(
    ("change", "place"),
    [({"project": "other"}, "Failed to find project other"), ({"zone": "us-west1-a"}, "Unknown zone.")],
)
def test_places_that_there_are_not_are_refused(change: dict[str, str], place: str) -> None:
    world = World()
    told = refused(lambda: world.groups.get(instance_group_manager="slice", **{**HERE, **change}))
    assert place in told.message


def test_a_region_that_there_is_not_is_refused() -> None:
    world = World()
    told = refused(lambda: world.policies.get(resource_policy="a", project=PROJECT, region="us-west1"))
    assert told.message == "Invalid value for field 'region': 'us-west1'. Unknown region."


GROUP = f"/compute/v1/projects/{PROJECT}/zones/us-central1-c/instanceGroupManagers"


@pytest.mark.parametrize(
    ("verb", "url", "body", "code", "words"),
    [
        (
            "POST",
            GROUP,
            b'{"name": "a", "hosts": 2}',
            400,
            "Unknown name \"hosts\" at 'instance_group_manager_resource'",
        ),
        ("POST", GROUP, b'{"targetSizePolicy": {"kind": "BULK"}}', 400, 'Unknown name "kind"'),
        ("POST", GROUP, b'{"targetSizePolicy": {"mode": "bulk"}}', 400, "Must be one of BULK, INDIVIDUAL"),
        ("POST", GROUP, b'{"targetSize": "two"}', 400, "Invalid JSON payload received."),
        ("POST", GROUP, b"{", 400, "Invalid JSON payload received."),
        ("POST", GROUP, b"[]", 400, "Invalid JSON payload received."),
        ("GET", f"{GROUP}?limit=3", b"", 400, 'Unknown name "limit"'),
        ("GET", f"{GROUP}?maxResults=many", b"", 400, "Invalid JSON payload received."),
        ("GET", GROUP, b'{"name": "a"}', 400, "Request bodies are not allowed here."),
        ("PUT", f"{GROUP}/a", b"{}", 501, "is not implemented by the local Compute Engine"),
        ("POST", f"{GROUP}/a/resize", b"", 501, "is not implemented by the local Compute Engine"),
        ("GET", "/compute/beta/projects", b"", 501, "is not implemented by the local Compute Engine"),
        ("GET", "/", b"", 501, "is not implemented by the local Compute Engine"),
    ],
)
def test_what_does_not_fit_googles_messages_is_refused(verb: str, url: str, body: bytes, code: int, words: str) -> None:
    answer = understand(verb, url, body)
    assert isinstance(answer, Refusal)
    assert words in answer.message
    assert answer.code == code


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.method)
def test_a_route_is_the_clients(route: Route) -> None:
    service, verb = route.method.split(".")
    name = re.sub(r"(?=[A-Z])", "_", service).lower()
    module = import_module(f"google.cloud.compute_v1.services.{name}.transports.rest_base")
    transport = getattr(module, f"_Base{service[0].upper()}{service[1:]}RestTransport")
    (option,) = getattr(transport, f"_Base{verb[0].upper()}{verb[1:]}")._get_http_options()
    assert option["uri"] == f"/compute/v1/{route.path}"
    assert (option["method"].upper(), option.get("body", "")) == (route.verb, route.body)


def test_the_methods_that_are_not_covered_say_so_to_the_client() -> None:
    world = World()
    assert refused(lambda: world.groups.resize_unary(instance_group_manager="a", size=1, **HERE)).code == 501


@pytest.mark.parametrize("given", ["a", "00000000-0000-0000-0000-000000000000"])
def test_a_request_id_must_be_a_uuid(given: str) -> None:
    world = World()
    assert refused(lambda: world.make_group(request_id=given)).reason == "invalid"
