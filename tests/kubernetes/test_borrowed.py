"""The demo on a cluster that is somebody's: it asks, leaves what is not its own alone, and leaves nothing behind."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from infra.local.borrowed import (
    DEMO_NAMESPACE,
    INSTALL_JOBSET,
    MADE_ON_COMPUTE,
    clean,
    question,
    standing,
    tolerates_tpus,
)
from infra.local.cluster_choice import Asked, Borrowed
from infra.local.demo import play
from infra.local.plan import REPOSITORY
from tests.cluster.servers import EMBEDDED, module, own_controller
from tests.node_groups import crd, two_hosts
from tpu_slices.domain.model.node_groups import FINALIZER
from tpu_standins.clients.api import Api
from tpu_standins.clients.installing import install
from tpu_standins.clients.kinds import KINDS
from tpu_standins.clients.labels import HOST, marked
from tpu_standins.clients.objects import Object
from tpu_standins.kubernetes.control_plane import ControlPlane, control_plane
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.ports import free_ports
from tpu_standins.prerequisites import Tools
from tpu_standins.processes import Processes
from tpu_standins.testing.leftovers import running_in
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

AGREED, ON_COMPUTE = Asked(yes=True), Asked(yes=True, compute=True)
COUNTED = (
    *("namespaces", "nodes", "jobsets", "jobs", "pods", "leases", "clusterroles", "clusterrolebindings"),
    *("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
    *("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
    *("customresourcedefinitions", "roles", "rolebindings", "secrets"),
)
THEIRS: Object = {
    "metadata": {"name": "theirs", "namespace": "default"},
    "spec": {
        "suspend": True,
        "replicatedJobs": [
            {
                "name": "one",
                "template": {
                    "spec": {
                        "template": {
                            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
                        }
                    }
                },
            }
        ],
    },
}


@contextmanager
def serving(programs: Programs, tools: Tools, folder: Path) -> Iterator[Path]:
    """Run a control plane with JobSet; yield its kubeconfig."""
    with Processes(setpriv=tools.setpriv, logs=folder / "logs", environment=os.environ) as processes:

        def extended(plane: ControlPlane) -> None:
            processes.wait_until_ready(*processes.start(own_controller(plane.kubeconfig, folder)))

        with control_plane(programs, processes, folder, extended=extended) as plane:
            yield plane.kubeconfig


@pytest.fixture(scope="module")
def theirs(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run somebody's cluster, with JobSet, a node and a JobSet of theirs; yield its kubeconfig."""
    with serving(programs, tools, tmp_path_factory.mktemp("theirs")) as kubeconfig:
        with closing(Api.of(kubeconfig)) as api:
            api.create("nodes", {"metadata": {"name": "their-node", "labels": {"team": "a"}}})
            api.create("jobsets", THEIRS)
            until(lambda: api.list("jobs")["items"], "the Job of their JobSet")
        yield kubeconfig


@pytest.fixture
def api(theirs: Path) -> Iterator[Api]:
    with closing(Api.of(theirs)) as one:
        yield one


def held(group: Object) -> Object:
    """Return a TPUNodeGroup as the relay holds it."""
    return {**group, "metadata": {**group["metadata"], "finalizers": [FINALIZER]}}


def everything(api: Api) -> dict[str, list[str]]:
    """Return the names of all objects, but those that controllers of the cluster make in every namespace."""
    return {plural: sorted(each["metadata"]["name"] for each in api.list(plural)["items"]) for plural in COUNTED}


def await_only(api: Api, before: dict[str, list[str]]) -> None:
    """Wait until there is what there was before: the cluster's own collectors are as late as they like."""
    until(lambda: everything(api) == before, lambda: f"{before}, not {everything(api)}")


def demo(state: Path, kubeconfig: Path, *arguments: str, stdin: int = subprocess.DEVNULL) -> tuple[int, str, str]:
    """Run the demo on a cluster; return its exit code and what it said."""
    command = [sys.executable, "-m", "infra.local", "--state", str(state), "demo", "--kubeconfig", str(kubeconfig)]
    environment = {**os.environ, "TMPDIR": str(state.parent)}
    done = subprocess.run(
        [*command, *arguments],
        cwd=REPOSITORY,
        env=environment,
        stdin=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def refusal(asked: Asked, kubeconfig: Path, state: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what the demo says when it refuses a cluster, as its command does but in this process."""
    assert play.demo(state, replace(asked, kubeconfig=kubeconfig)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    return said.err.removesuffix("\n")


def test_the_story_happens_there_and_what_was_made_is_removed(theirs: Path, api: Api, tmp_path: Path) -> None:
    before = everything(api)
    state = tmp_path / "state"
    code, said, errors = demo(state, theirs, "--yes")
    assert (code, errors) == (0, ""), said
    assert "All 5 steps completed, and nothing is left" in said
    await_only(api, before)
    assert not (state / "kubeconfig").exists()
    assert not running_in(tmp_path)


@pytest.mark.proof
def test_so_it_does_with_slices_on_compute_engine(theirs: Path, api: Api, tmp_path: Path) -> None:
    before = everything(api)
    state = tmp_path / "state"
    code, said, errors = demo(state, theirs, "--backend", "compute", "--yes")
    assert (code, errors) == (0, ""), said
    assert "All 3 steps completed, and nothing is left" in said
    await_only(api, before)
    assert not (state / "kubeconfig").exists()
    assert not running_in(tmp_path)


def test_a_kind_tpunodegroup_that_is_somebodys_is_left_alone(
    theirs: Path, api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.create("customresourcedefinitions", crd())
    try:
        until(lambda: api.serves("tpunodegroups"), "the kind to be served")
        until(lambda: api.create("tpunodegroups", held(two_hosts("of-an-operator"))) != {}, "a group to be there")
        refused = "a CustomResourceDefinition tpunodegroups.tpu.google.com that is not of a local stack"
        [said] = refusal(ON_COMPUTE, theirs, tmp_path, capsys).splitlines()
        assert refused in said
        assert clean(api, MADE_ON_COMPUTE) == {}
        [group] = api.list("tpunodegroups")["items"]
        assert group["metadata"]["finalizers"] == [FINALIZER]
    finally:
        api.patch("tpunodegroups", "default", "of-an-operator", {"metadata": {"finalizers": None}})
        api.delete("customresourcedefinitions", None, crd()["metadata"]["name"])
        until(lambda: not api.serves("tpunodegroups"), "the kind to go")
        until(lambda: crd()["metadata"]["name"] not in everything(api)["customresourcedefinitions"], "its definition")


def test_node_groups_of_a_stack_that_was_killed_are_let_go(api: Api) -> None:
    before = everything(api)
    ours = marked(crd())
    ours["metadata"]["labels"]["app.kubernetes.io/version"] = "local"
    install(api, KINDS["tpunodegroups"], ours, manager="a-stack")
    api.create("tpunodegroups", held(two_hosts("left")))
    token = {"app.kubernetes.io/managed-by": "tpu-slice-provisioner", "google.com/tpu-slice-id": "left"}
    for name, labels in (("bootstrap-token-ffffff", token), ("theirs", {})):
        api.create("secrets", {"metadata": {"name": name, "namespace": "kube-system", "labels": labels}})
    assert standing(api, MADE_ON_COMPUTE) == {
        "customresourcedefinitions": ["tpunodegroups.tpu.google.com"],
        "secrets": ["bootstrap-token-ffffff"],
    }
    assert clean(api, MADE_ON_COMPUTE) == {}
    assert [each["metadata"]["name"] for each in api.list("secrets", "kube-system")["items"]] == ["theirs"]
    api.delete("secrets", "kube-system", "theirs")
    await_only(api, before)


def test_nothing_is_written_where_nobody_can_be_asked(theirs: Path, api: Api, tmp_path: Path) -> None:
    before = everything(api)
    code, _, errors = demo(tmp_path / "state", theirs)
    server = yaml.safe_load(theirs.read_text())["clusters"][0]["cluster"]["server"]
    assert code == 2
    assert errors.startswith(f"{server} (context local of {theirs}) is not a cluster of this stack.")
    assert "--yes" in errors
    await_only(api, before)


def test_who_is_asked_may_say_no(theirs: Path, api: Api, tmp_path: Path) -> None:
    before = everything(api)
    terminal, stdin = pty.openpty()
    os.write(terminal, b"n\n")
    code, said, errors = demo(tmp_path / "state", theirs, stdin=stdin)
    for each in (terminal, stdin):
        os.close(each)
    assert (code, errors) == (2, "Nothing was written.\n")
    assert said.endswith("Go on? [y/N] ")
    await_only(api, before)


def test_a_relay_that_is_deployed_there_is_not_taken_over(
    theirs: Path, api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "tpu-slice-provisioner-relay"
    api.create("clusterroles", {"metadata": {"name": name}, "rules": []})
    try:
        [said] = refusal(AGREED, theirs, tmp_path, capsys).splitlines()
        assert f"a ClusterRole {name} that is not of a local stack" in said
    finally:
        api.delete("clusterroles", None, name)


def test_what_an_earlier_stack_left_is_told_and_removed_and_nothing_else(theirs: Path, api: Api) -> None:
    before = everything(api)
    api.create("namespaces", marked({"metadata": {"name": DEMO_NAMESPACE}}))
    api.create("nodes", {"metadata": {"name": "host", "labels": {HOST: "true", "cloud.google.com/gke-nodepool": "p"}}})
    left = standing(api)
    assert left == {"namespaces": [DEMO_NAMESPACE], "nodes": ["host"]}
    one = Borrowed(kubeconfig=theirs, context="c", server="s")
    assert f"still: namespaces {DEMO_NAMESPACE}; nodes host." in question(one, theirs, left, tolerated=True)
    assert clean(api) == {}
    await_only(api, before)


def test_who_must_tolerate_the_taint_is_told_so(theirs: Path, api: Api) -> None:
    assert tolerates_tpus(api)
    one = Borrowed(kubeconfig=theirs, context="c", server="s")
    assert "must tolerate" in question(one, theirs, {}, tolerated=False)
    assert "must tolerate" not in question(one, theirs, {}, tolerated=True)


def test_without_jobset_its_command_is_shown_and_nothing_is_written(
    tools: Tools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig, (port,) = tmp_path / "kubeconfig", free_ports(1)
    arguments = ("--no-controllers", "--port", str(port), "--kubeconfig", str(kubeconfig))
    with Processes(setpriv=tools.setpriv, logs=tmp_path / "logs", environment=os.environ) as processes:
        bare = module(EMBEDDED, f"listening on https://127.0.0.1:{port}", *arguments)
        processes.wait_until_ready(*processes.start(bare))
        assert refusal(AGREED, kubeconfig, tmp_path / "state", capsys).endswith(f"Install it:\n  {INSTALL_JOBSET}")
        with closing(Api.of(kubeconfig)) as api:
            assert DEMO_NAMESPACE not in [each["metadata"]["name"] for each in api.list("namespaces")["items"]]
