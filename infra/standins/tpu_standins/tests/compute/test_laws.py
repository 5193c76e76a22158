"""Whatever is asked for, and whatever goes wrong, in any order: what holds all the time, and how it ends."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from google.api_core.exceptions import GoogleAPICallError
from hypothesis import given
from hypothesis import strategies as st

from tpu_standins.cloud.loopback import as_json
from tpu_standins.compute.buttons import press
from tpu_standins.compute.state import Action, State
from tpu_standins.testing.compute import (
    HERE,
    PROJECT,
    REGIONAL,
    World,
    a_group,
    a_policy,
    a_template,
    alone,
    of_reservation,
)

NAMES = ("a", "b")
Step = Callable[[World], Any]


def _policy(name: str) -> Step:
    return lambda world: world.make_policy(a_policy(name))


def _template(name: str) -> Step:
    properties = of_reservation() if name == "b" else {}
    return lambda world: world.make_template(a_template(name, **properties))


def _group(name: str, *, bulk: bool) -> Step:
    made = a_group(name) if bulk else alone(name, size=3)
    return lambda world: world.make_group(made)


def _delete(name: str, kind: str) -> Step:
    deletions: dict[str, Step] = {
        "group": lambda world: world.groups.delete_unary(instance_group_manager=name, **HERE),
        "template": lambda world: world.templates.delete_unary(instance_template=name, project=PROJECT),
        "policy": lambda world: world.policies.delete_unary(resource_policy=name, **REGIONAL),
    }
    return deletions[kind]


def _recreate(name: str) -> Step:
    def step(world: World) -> None:
        resource = {"instances": [each.instance for each in world.members(name)][:1]}
        world.groups.recreate_instances_unary(
            instance_group_manager=name, instance_group_managers_recreate_instances_request_resource=resource, **HERE
        )

    return step


def _fault(kind: str, **more: Any) -> Step:
    return lambda world: world.press("POST", "/faults", kind=kind, **more)


def _press(path: str, name: str) -> Step:
    """Return a step that may find nothing to do."""
    return lambda world: press(world.plane, "POST", path, as_json(200, {"group": name}).body)


def _reserve(count: int) -> Step:
    return lambda world: world.press(
        "POST", "/reservations", **HERE, name="mine", machine_type="tpu7x-standard-4t", count=count
    )


def _after(seconds: float) -> Step:
    return lambda world: world.after(seconds)


names = st.sampled_from(NAMES)
steps = st.one_of(
    st.builds(_policy, names),
    st.builds(_template, names),
    st.builds(_group, names, bulk=st.booleans()),
    st.builds(_delete, names, st.sampled_from(("group", "template", "policy"))),
    st.builds(_recreate, names),
    st.builds(_press, st.sampled_from(("/instances/kill", "/instances/silence", "/instances/heal")), names),
    st.builds(_fault, st.sampled_from(("stockout", "quota")), hosts=st.integers(0, 4)),
    st.builds(_fault, st.sampled_from(("slow", "fails", "lost_answer", "unavailable"))),
    st.builds(_reserve, st.integers(0, 4)),
    st.builds(_after, st.sampled_from((0.5, 1, 3, 7, 20))),
)
beginning = st.just([_policy("a"), _template("a"), _policy("b"), _template("b"), _after(1)])


def _holds(state: State, now: float) -> None:
    """Check what holds at any time."""
    for instance in state.instances.values():
        assert instance.group in state.groups
        assert instance.vm is None or instance.vm.born <= now
        assert instance.action is not Action.DELETING or instance.vm is not None
    for group in state.groups.values():
        assert group.template in state.templates
        assert group.policy is None or group.policy in state.policies
        born = [each.life > 0 for each in state.members(group.path)]
        assert not group.bulk or all(born) or not any(born)
    for operation in state.operations.values():
        assert operation.ended is None or operation.ended >= operation.due >= operation.started


@given(st.builds(list.__add__, beginning, st.lists(steps, max_size=14)))
def test_whatever_happens_everything_settles_once_there_is_stock(story: list[Step]) -> None:
    world = World()
    for step in story:
        with suppress(GoogleAPICallError):  # much is refused
            step(world)
        _holds(*world.plane.look())
    world.press("DELETE", "/faults")
    _reserve(9)(world)
    world.after(300)
    state, now = world.plane.look()
    _holds(state, now)
    assert all(operation.ended is not None for operation in state.operations.values())
    for group in state.groups.values():
        seen = {status for _, status in world.statuses(group.path.name)}
        assert seen <= {"RUNNING", "TERMINATED"}
        assert world.group(group.path.name).status.is_stable == (seen <= {"RUNNING"})
