"""`slices adopt` in a self-managed cluster: what it demands, shows and writes, and the script that it prints."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_configure import slices
from tests.domain.planning.test_node_groups import self_managed
from tests.node_groups import Json
from tests.operator_objects import a_group_owner, an_operator, changed_object, its_pod, operators_objects
from tests.world import World
from tpu_slices.domain.model.node_groups import FINALIZER
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.planning.tpu_operator import FINALIZERS, operator_names

OWNER = a_group_owner()
NAMES = operator_names(OWNER)
OBJECTS = operators_objects(OWNER)


@pytest.fixture
def world() -> World:
    world = World(of_cluster=self_managed())
    world.backend.hold_legacy_pool(
        LegacyPool(name=NAMES.group, namespace="research", jobset="trainers", job="trainers")
    )
    return world


def written(tmp_path: Path, *objects: Json, name: str = "groups.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


def adopted(world: World, tmp_path: Path, *options: str, objects: list[Json] | None = None) -> Any:
    return slices(world, "adopt", "-f", written(tmp_path, *(objects or [*OBJECTS, an_operator()])), *options)


def test_a_slice_of_tpu_operators_is_shown_and_adopted(world: World, tmp_path: Path) -> None:
    shown = adopted(world, tmp_path, "--dry-run")
    assert "1 of 1 instance group can be adopted. Nothing was changed." in shown.stdout
    assert "research/trainers" in shown.stdout
    assert world.records == {}
    result = adopted(world, tmp_path, "--yes")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (
        0,
        "1 of 1 instance group adopted; `slices list` shows them.",
    )
    (record,) = world.records.values()
    assert (record.pool, record.attempt) == (NAMES.group, 0)


def test_what_is_left_alone_says_why(world: World, tmp_path: Path) -> None:
    group, policy, template, _ = OBJECTS
    shown = adopted(world, tmp_path, "--yes", objects=[group, policy, template, an_operator()])
    assert "TPU operator has not made its ManagedInstanceGroup" in " ".join(shown.stdout.split())
    assert world.records == {}


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        pytest.param([an_operator(replicas=1)], "Deployment tpu-node-group/", id="it is to run"),
        pytest.param([an_operator(there=1)], "has replicas: 1", id="it is ending"),
        pytest.param([changed_object(an_operator(), spec={})], "has replicas: 1", id="one replica is the default"),
        pytest.param([an_operator(), its_pod()], "Pod tpu-node-group/", id="its pod is there"),
    ],
)
@pytest.mark.parametrize("options", [["--yes"], ["--handover"], ["--dry-run"], ["--yes", "--operator-stopped"]])
def test_nothing_is_adopted_while_tpu_operator_runs(
    world: World, tmp_path: Path, extra: list[Json], why: str, options: list[str]
) -> None:
    result = adopted(world, tmp_path, *options, objects=[*OBJECTS, *extra])
    assert (result.exit_code, world.records) == (2, {})
    assert why in result.stderr
    assert "kubectl -n tpu-node-group scale deployment tpu-node-group-controller-manager --replicas 0" in result.stderr


def test_somebody_has_to_say_that_it_does_not_run(world: World, tmp_path: Path) -> None:
    unknown = adopted(world, tmp_path, "--yes", objects=OBJECTS)
    assert (unknown.exit_code, world.records) == (2, {})
    assert "no FILE shows whether TPU operator runs" in unknown.stderr
    assert "--operator-stopped" in unknown.stderr
    assert adopted(world, tmp_path, "--yes", "--operator-stopped", objects=OBJECTS).exit_code == 0
    assert len(world.records) == 1


def test_what_a_user_wrote_is_no_object_of_the_api_server(world: World, tmp_path: Path) -> None:
    result = adopted(world, tmp_path, "--yes", objects=[changed_object(OBJECTS[0], metadata__uid=None)])
    assert (result.exit_code, "kubectl get tpunodegroups -A -o json" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "broken",
    [
        changed_object(OBJECTS[3], metadata__ownerReferences="mine"),
        changed_object(OBJECTS[3], status="mine"),
        changed_object(an_operator(), spec__replicas="none"),
    ],
)
def test_objects_that_were_edited_are_an_error_in_one_line(world: World, tmp_path: Path, broken: Json) -> None:
    result = adopted(world, tmp_path, "--yes", objects=[*OBJECTS[:3], an_operator(there=1), broken])
    assert result.exit_code == 2
    assert result.stderr.count("\n") <= 4
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("option", ["--handover", "--operator-stopped"])
def test_on_gke_there_is_nothing_of_tpu_operators(tmp_path: Path, option: str) -> None:
    result = adopted(World(), tmp_path, option)
    assert result.exit_code == 2
    assert f"{option}: only in a self-managed cluster" in result.stderr


# the script


def script(world: World, tmp_path: Path, objects: list[Json] | None = None) -> list[list[str]]:
    """Return the commands of the script, in words."""
    result = adopted(world, tmp_path, "--handover", objects=objects)
    assert result.exit_code == 0
    first, *rest = result.stdout.splitlines()
    assert first == "set -eu"
    return [shlex.split(line, comments=True) or [line] for line in rest]


def test_an_adopted_group_is_freed_part_by_part_and_at_last_itself(world: World, tmp_path: Path) -> None:
    adopted(world, tmp_path, "--yes")
    lines = script(world, tmp_path)
    kinds = ("workloadpolicies", "instancetemplates", "managedinstancegroups")
    assert [(line[1], line[2], line[3]) for line in lines] == [
        *(
            (verb, f"{kind}.tpu.google.com", name)
            for kind, name in zip(kinds, NAMES, strict=True)
            for verb in ("patch", "delete")
        ),
        ("patch", "tpunodegroups.tpu.google.com", "trainers"),
    ]
    assert {tuple(line[4:6]) for line in lines} == {("--namespace", "research")}
    patches = [json.loads(line[-1]) for line in lines if line[1] == "patch"]
    assert patches == [
        *3 * [{"metadata": {"finalizers": None}}],
        {"metadata": {"resourceVersion": "7", "finalizers": []}},
    ]


def test_finalizers_of_others_stay(world: World, tmp_path: Path) -> None:
    adopted(world, tmp_path, "--yes")
    kept = [FINALIZER, "example.com/theirs"]
    group = changed_object(OBJECTS[0], metadata__finalizers=[*FINALIZERS, *kept])
    [*_, last] = script(world, tmp_path, [group, *OBJECTS[1:], an_operator()])
    assert json.loads(last[-1])["metadata"]["finalizers"] == kept


def test_what_is_free_already_needs_no_command(world: World, tmp_path: Path) -> None:
    adopted(world, tmp_path, "--yes")
    free = changed_object(OBJECTS[0], metadata__finalizers=[FINALIZER])
    assert script(world, tmp_path, [free, an_operator()]) == []


def test_what_is_not_adopted_stays_with_tpu_operator(world: World, tmp_path: Path) -> None:
    before = ["# research/trainers is left to TPU operator: it is not adopted yet: run this without --handover first"]
    assert script(world, tmp_path) == [before]
    [left] = script(world, tmp_path, [*OBJECTS[:3], an_operator()])
    assert left[0].startswith("# research/trainers is left to TPU operator: TPU operator has not made")
    assert world.records == {}
