"""Every served verb has a use, and every use works with old and new kubectl."""

import subprocess
from typing import Any

import pytest

from infra.local.cluster.resources import RESOURCES
from infra.local.cluster.uses import USES, Use, served
from tests.local.cluster.served import Said, Served
from tests.local.cluster.world import jobset, node, pod

METHODS = {"create": "POST", "get": "GET", "list": "GET", "patch": "PATCH", "update": "PUT", "delete": "DELETE"}


def test_whatever_is_served_is_needed() -> None:
    unneeded = [row for row in served() if not any(use.is_of(*row) for use in USES)]
    assert unneeded == []


def test_whatever_is_needed_is_served() -> None:
    unserved = [use for use in USES if not any(use.is_of(*row) for row in served())]
    assert unserved == []


def test_each_need_has_one_reason() -> None:
    assert all(bool(use.command) != bool(use.client) for use in USES)


def minor(client: Served) -> int:
    suffix = client.program.suffix[1:]
    return int(suffix) if suffix.isdigit() else 0


def spoken(client: Served, use: Use, names: dict[str, str], body: Any = None) -> Said:
    """Run the command of a row; kubectl logs the method and the content type that it sends."""
    command = use.command
    for key, value in names.items():
        command = command.replace("{" + key + "}", value)
    words, _, patch = command.partition(" -p ")
    flags = [f"--namespace={names['namespace']}", "-v=8"]
    arguments = [*flags, *words.split(), *(["-p", patch] if patch else [])]
    said = client.kubectl(*arguments, stdin=body)
    assert said.code == 0, said
    assert METHODS[use.verb] in said.error
    if use.content_type and minor(client) >= use.since:
        assert use.content_type in said.error
    return said


def watched(client: Served, plural: str, namespace: str) -> None:
    arguments = client.command("get", plural, "--watch", "--namespace", namespace, "--no-headers")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.terminate()


@pytest.mark.emulators
@pytest.mark.enable_socket
@pytest.mark.timeout(120)
class TestWithKubectl:
    @pytest.mark.parametrize(("plural", "obj"), [("pods", pod("one")), ("jobsets", jobset("one"))])
    def test_an_object_meets_every_verb(self, client: Served, plural: str, obj: dict[str, Any]) -> None:
        names = {"plural": plural, "name": "one", "namespace": client.namespace()}
        resource = RESOURCES[plural]
        body = obj | {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "one"}}
        uses = sorted((use for use in USES if not use.plural), key=lambda use: use.verb == "delete")
        for use in uses:
            if not any(row[0] == plural and use.is_of(*row) for row in served()) or use.client:
                continue
            if use.verb == "watch":
                watched(client, plural, names["namespace"])
                continue
            whole = body
            if use.verb == "update":
                # The replacement must include the fields that the server has filled in.
                whole = client.json("get", plural, "one", "-n", names["namespace"])
            spoken(client, use, names, whole if "-f-" in use.command else None)
        assert "NotFound" in client.kubectl("get", plural, "one", "-n", names["namespace"]).error

    @pytest.mark.parametrize("use", [use for use in USES if use.since], ids=lambda use: use.plural)
    def test_a_kind_with_a_command_of_its_own_is_created(self, client: Served, use: Use) -> None:
        namespace = client.namespace()
        names = {"name": f"made-{namespace}", "namespace": namespace}
        spoken(client, use, names)
        assert client.kubectl("get", use.plural, names["name"], "-n", namespace).code == 0

    def test_what_is_created_in_protobuf_says_what_was_asked_for(self, client: Served) -> None:
        namespace = client.namespace()
        make = ("create", "-n", namespace)
        client.kubectl(*make, "deployment", "web", "--image=python:3.12", "--replicas=2", "--port=80")
        spec = client.json("get", "deployment", "web", "-n", namespace)["spec"]
        container = spec["template"]["spec"]["containers"][0]
        assert (spec["replicas"], spec["selector"]) == (2, {"matchLabels": {"app": "web"}})
        assert (container["image"], container["ports"][0]["containerPort"]) == ("python:3.12", 80)
        client.kubectl(*make, "job", "work", "--image=python:3.12", "--", "python", "--version")
        template = client.json("get", "job", "work", "-n", namespace)["spec"]["template"]["spec"]
        assert template["containers"][0]["command"] == ["python", "--version"]
        assert template["restartPolicy"] == "Never"

    def test_a_zero_is_something_to_say(self, client: Served) -> None:
        namespace = client.namespace()
        client.kubectl("create", "deployment", "none", "-n", namespace, "--image=python:3.12", "--replicas=0")
        assert client.json("get", "deployment", "none", "-n", namespace)["spec"]["replicas"] == 0
        assert client.kubectl("create", "priorityclass", f"zero-{namespace}", "--value=0").code == 0

    def test_the_subresources_of_pods_are_used(self, client: Served) -> None:
        namespace = client.namespace()
        host = f"host-{namespace}"
        client.kubectl("create", "-f-", stdin={"apiVersion": "v1", "kind": "Node"} | node(host))
        short = pod(node=host, namespace=namespace)
        short["spec"]["terminationGracePeriodSeconds"] = 0
        client.kubectl("create", "-f-", stdin={"apiVersion": "v1", "kind": "Pod"} | short)
        for subresource in ("log", "eviction"):
            use = next(use for use in USES if use.subresource == subresource and use.command)
            spoken(client, use, {"name": "one", "node": host, "namespace": namespace})
