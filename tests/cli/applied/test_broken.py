"""`slices plan` of files in which any object is broken: each has its answer, and none ends the run."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.applied.asking import a_job, groups
from tests.cli.applied.test_queues import SHAPE, flavor, queued, queues
from tests.cli.applied.test_waits import grouped, pod_group
from tpu_slices_cli.clusters import default_settings
from tpu_slices_cli.manifests import Manifest
from tpu_slices_cli.planning import plan

OBJECTS = [queued(SHAPE), *queues(flavor("v5e", SHAPE)), grouped(), pod_group(8), *a_job(), groups()]
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, "", [], {}, True, "x", ["x"], [None], [{}], {"name": None}, "${X}", 1.5]
)
Place = tuple[str | int, ...]


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """Yield the paths of all that is below the metadata and the spec of objects."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))
    if len(path) > 2:
        yield path


@pytest.mark.slow
@settings(max_examples=100)
@given(st.sampled_from([*places(OBJECTS)]), JUNK)
def test_no_broken_object_of_a_file_ends_the_run(place: Place, junk: Any) -> None:
    objects: Any = copy.deepcopy(OBJECTS)
    inner = objects
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = junk
    plan([Manifest("file", each) for each in objects], default_settings, "research")
