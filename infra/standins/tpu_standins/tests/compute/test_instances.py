"""VMs over the API: metadata and its fingerprint, guest attributes, and what a VM's metadata server says."""

import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from google.cloud import compute_v1 as gce

from tpu_standins.cloud.loopback import Answered, Asked
from tpu_standins.compute import guests
from tpu_standins.compute.metadata import answers
from tpu_standins.compute.metadata.server import MetadataServer
from tpu_standins.compute.paths import Resource, parse_link
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.compute import HERE, PROJECT, World, a_template, alone, of_spot, refused

FLAVOR = {"metadata-flavor": "Google"}
ITEMS = [{"key": "enable-guest-attributes", "value": "TRUE"}, {"key": "kube-labels", "value": "a=b"}]


@pytest.fixture
def world() -> World:
    """Return a world with one host that runs, whose guest attributes are enabled."""
    world = World()
    world.make_slice(alone(), metadata={"items": ITEMS})
    world.after(11)
    return world


def items(world: World) -> Mapping[str, str]:
    return {item.key: item.value for item in world.instance().metadata.items}


def write(world: World, **changes: str) -> gce.Operation:
    current = world.instance().metadata
    new = {**{item.key: item.value for item in current.items}, **changes}
    body = gce.Metadata(
        fingerprint=current.fingerprint, items=[gce.Items(key=key, value=value) for key, value in new.items()]
    )
    operation = world.instances.set_metadata_unary(instance=world.members()[0].name, metadata_resource=body, **HERE)
    assert isinstance(operation, gce.Operation)
    return operation


def path(world: World) -> Resource:
    found = parse_link(world.members()[0].instance, PROJECT)
    assert found is not None
    return found


def asked(world: World, target: str, headers: Mapping[str, str] = FLAVOR) -> Answered:
    request = Asked("GET", f"/computeMetadata/v1/{target}", headers, b"")
    question = answers.question(request.target)
    assert question is not None
    return answers.refused(request) or answers.answer(world.plane.look()[0], path(world), question, world.clock.now)


def test_a_vm_has_its_templates_metadata_and_its_groups(world: World) -> None:
    found = items(world)
    assert (found["kube-labels"], found["enable-guest-attributes"]) == ("a=b", "TRUE")
    assert found["created-by"].endswith("/zones/us-central1-c/instanceGroupManagers/slice")
    assert found["instance-template"].endswith("/global/instanceTemplates/slice")


def test_metadata_is_written_with_the_fingerprint_and_changes_it(world: World) -> None:
    before = world.instance().metadata.fingerprint
    operation = write(world, token="secret")
    assert "token" not in items(world)
    world.after(1)
    assert world.operation(operation).operation_type == "setMetadata"
    assert items(world)["token"] == "secret"
    assert world.instance().metadata.fingerprint != before


def test_the_same_metadata_has_the_same_fingerprint(world: World) -> None:
    before = world.instance().metadata.fingerprint
    write(world)
    world.after(1)
    assert world.instance().metadata.fingerprint == before


def test_a_recreated_vm_has_its_templates_metadata_again(world: World) -> None:
    write(world, token="secret")
    world.after(1)
    world.groups.recreate_instances_unary(
        instance_group_manager="slice",
        instance_group_managers_recreate_instances_request_resource={"instances": [world.members()[0].instance]},
        **HERE,
    )
    world.after(15)
    assert "token" not in items(world)


def test_a_restarted_vm_keeps_its_metadata(world: World) -> None:
    write(world, token="secret")
    world.after(1)
    world.press("POST", "/instances/kill", group="slice")
    world.after(11)
    assert items(world)["token"] == "secret"


def test_a_vm_shows_what_its_template_asked_for() -> None:
    world = World()
    world.make_slice(
        alone(),
        **of_spot(),
        labels={"team": "a"},
        tags={"items": ["tpu"]},
        service_accounts=[{"email": "a@b", "scopes": ["s"]}],
    )
    world.after(11)
    seen = world.instance()
    assert seen.machine_type.endswith("zones/us-central1-c/machineTypes/tpu7x-standard-4t")
    assert (dict(seen.labels), list(seen.tags.items)) == ({"team": "a"}, ["tpu"])
    assert (seen.service_accounts[0].email, seen.scheduling.provisioning_model) == ("a@b", "SPOT")
    assert seen.network_interfaces[0].network_i_p.startswith("10.")


def get_guests(world: World, query: str) -> Any:
    return world.instances.get_guest_attributes({"instance": world.members()[0].name, "query_path": query, **HERE})


def put(world: World, where: tuple[str, str], value: str | None) -> None:
    world.plane.change(lambda state, _: guests.written(state, path(world), where, value))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tpu/", [("tpu", "joined", "no"), ("tpu", "step", "3")]),
        ("tpu/step", [("tpu", "step", "3")]),
        ("", [("other", "a", "b"), ("tpu", "joined", "no"), ("tpu", "step", "3")]),
    ],
)
def test_guest_attributes_are_read_by_path(world: World, query: str, found: list[tuple[str, str, str]]) -> None:
    for where, value in ((("tpu", "step"), "3"), (("tpu", "joined"), "no"), (("other", "a"), "b")):
        put(world, where, value)
    seen = get_guests(world, query)
    assert [(each.namespace, each.key, each.value) for each in seen.query_value.items] == found


def test_guest_attributes_that_there_are_not_are_not_found(world: World) -> None:
    assert refused(lambda: get_guests(world, "tpu/step")).code == 404
    put(world, ("tpu", "step"), "3")
    put(world, ("tpu", "step"), None)
    assert refused(lambda: get_guests(world, "tpu/")).code == 404


def test_guest_attributes_that_are_not_enabled_are_forbidden() -> None:
    world = World()
    world.make_slice(alone())
    world.after(11)
    assert refused(lambda: get_guests(world, "tpu/")).code == 403
    assert asked(world, "instance/guest-attributes/").status == 403


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("instance/attributes/kube-labels", "a=b"),
        ("instance/zone", "/zones/us-central1-c"),
        ("instance/machine-type", "/machineTypes/tpu7x-standard-4t"),
        ("project/project-id", PROJECT),
        ("instance/preempted", "FALSE"),
        ("instance/scheduling/preemptible", "FALSE"),
        ("", "instance/\nproject/\n"),
        ("project/", "numeric-project-id\nproject-id\n"),
    ],
)
def test_a_vm_is_told_about_itself(world: World, target: str, body: str) -> None:
    told = asked(world, target)
    assert told.status == 200
    assert told.body.decode().endswith(body)
    assert told.headers["Metadata-Flavor"] == "Google"


def test_a_vm_is_told_its_name_and_its_number(world: World) -> None:
    name = world.members()[0].name
    assert asked(world, "instance/name").body.decode() == name
    assert asked(world, "instance/id").body.decode() == str(world.instance().id)
    assert asked(world, "instance/hostname").body.decode().startswith(f"{name}.us-central1-c.c.{PROJECT}.")


def test_a_preempted_vm_is_told_so() -> None:
    world = World()
    world.make_slice(alone(), **of_spot())
    world.after(11)
    world.press("POST", "/instances/preempt", group="slice")
    assert asked(world, "instance/preempted").body == b"TRUE"


def test_a_directory_is_told_as_json_in_camel_case(world: World) -> None:
    told = asked(world, "instance/?recursive=true")
    found = json.loads(told.body)
    assert found["attributes"]["kube-labels"] == "a=b"
    assert found["networkInterfaces"]["0"]["ip"].startswith("10.")


@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [
        ("instance/name", {}, 403),
        ("instance/name", {**FLAVOR, "x-forwarded-for": "10.0.0.1"}, 403),
        ("instance/attributes/none", FLAVOR, 404),
        ("instance/name/first", FLAVOR, 404),
        ("instance/attributes", FLAVOR, 301),
        ("instance/service-accounts/default/token", FLAVOR, 501),
        ("instance/?alt=text", FLAVOR, 501),
        ("instance/name?format=full", FLAVOR, 501),
    ],
)
def test_what_a_vm_is_not_told(world: World, target: str, headers: Mapping[str, str], status: int) -> None:
    assert asked(world, target, headers).status == status


@pytest.fixture
def served(world: World) -> Iterator[MetadataServer]:
    server = MetadataServer(world.plane)
    yield server
    server.stop()


def call(server: MetadataServer, world: World, target: str, data: bytes | None = None, verb: str = "GET") -> Any:
    url = f"{server.base(path(world))}/computeMetadata/v1/{target}"
    return urlopen(Request(url, data, headers=FLAVOR, method=verb), timeout=PATIENCE_SECONDS)


@pytest.mark.enable_socket
def test_a_vm_writes_guest_attributes(served: MetadataServer, world: World) -> None:
    call(served, world, "instance/guest-attributes/tpu/step", b"3", "PUT").close()
    assert get_guests(world, "tpu/step").query_value.items[0].value == "3"
    with call(served, world, "instance/guest-attributes/tpu/step") as reply:
        assert reply.read() == b"3"
    call(served, world, "instance/guest-attributes/tpu/step", verb="DELETE").close()
    assert refused(lambda: get_guests(world, "tpu/")).code == 404


@pytest.mark.enable_socket
@pytest.mark.parametrize(
    ("target", "verb", "status"),
    [("instance/guest-attributes/tpu", "PUT", 404), ("instance/attributes/a", "PUT", 501), ("", "POST", 501)],
)
def test_a_vm_writes_nothing_else(served: MetadataServer, world: World, target: str, verb: str, status: int) -> None:
    with pytest.raises(HTTPError) as caught:
        call(served, world, target, b"3", verb)
    caught.value.close()
    assert caught.value.code == status


@pytest.mark.enable_socket
def test_whoever_waits_for_a_change_is_told_of_it(served: MetadataServer, world: World) -> None:
    told: list[bytes] = []
    target = "instance/attributes/?recursive=true"
    known = asked(world, target).headers["ETag"]

    def wait() -> None:
        with call(served, world, f"{target}&wait_for_change=true&last_etag={known}") as reply:
            told.append(reply.read())

    waiting = threading.Thread(target=wait)
    waiting.start()
    write(world, token="secret")
    world.after(1)
    waiting.join()
    assert "token" in json.loads(told[0])


@pytest.mark.enable_socket
def test_whoever_knows_an_older_state_does_not_wait(served: MetadataServer, world: World) -> None:
    with call(served, world, "instance/attributes/kube-labels?wait_for_change=true&last_etag=0") as reply:
        assert reply.read() == b"a=b"


@pytest.mark.enable_socket
def test_waiting_ends_with_its_time(served: MetadataServer, world: World) -> None:
    target = "instance/attributes/kube-labels?wait_for_change=true&timeout_sec=0"
    with call(served, world, target) as reply:
        assert reply.read() == b"a=b"


@pytest.mark.enable_socket
def test_vms_that_there_are_not_have_no_metadata(served: MetadataServer) -> None:
    none = f"{served.url}/{PROJECT}/us-central1-c/none/computeMetadata/v1/instance/name"
    for url in (none, f"{served.url}/computeMetadata/v1/instance/name"):
        with pytest.raises(HTTPError) as caught:
            urlopen(Request(url, headers=FLAVOR), timeout=PATIENCE_SECONDS)
        caught.value.close()
        assert caught.value.code == 404


def test_the_template_alone_decides_what_a_vm_begins_with(world: World) -> None:
    world.make_template(a_template("other", metadata={"items": [{"key": "own", "value": "1"}]}))
    world.after(1)
    world.make_group(alone("other"))
    world.after(11)
    keys = [item.key for item in world.instance(world.members("other")[0].name).metadata.items]
    assert keys == ["own", "created-by", "instance-template"]


def test_vms_are_listed_with_their_metadata(world: World) -> None:
    (found,) = world.instances.list({"filter": f'name eq "{world.members()[0].name}"', **HERE})
    assert (found.name, found.metadata) == (world.members()[0].name, world.instance().metadata)
    assert list(world.instances.list({"filter": 'name eq "other-.*"', **HERE})) == []


def test_metadata_for_all_instances_of_a_group_overrides_that_of_the_template() -> None:
    world = World()
    for_all = {"properties": {"metadata": {"kube-labels": "c=d", "more": "1"}}}
    world.make_slice(alone(all_instances_config=for_all), metadata={"items": ITEMS})
    world.after(11)
    found = items(world)
    assert (found["kube-labels"], found["more"], found["enable-guest-attributes"]) == ("c=d", "1", "TRUE")
