"""`slices retire` ends all that a cluster has, and leaves nothing of it."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER
from tests.cli.stage import Stage, serving
from tests.flows.swept import make_unreadable
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import PoolName
from tpu_slices.wire.cluster_settings import settings_key
from tpu_slices.wire.documents import key_of

COMMAND = ("retire", CLUSTER, "-m", "moved to another.", "--yes")


class WorldGoesOn:
    """A sleep during which the world goes on by a minute; after so many, Ctrl-C."""

    def __init__(self, stage: Stage, most: int = 60) -> None:
        self._stage, self._left = stage, most

    def __call__(self, seconds: float) -> None:
        assert seconds == 10
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        self._stage.world.settle(minutes=1)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage()
    monkeypatch.setattr("tpu_slices_cli.retiring.sleep", WorldGoesOn(made))
    return made


def test_slices_in_use_are_deleted_and_the_cluster_is_forgotten(stage: Stage) -> None:
    serving(stage)
    said = stage.output_of(*COMMAND).splitlines()
    assert said[0] == f"{CLUSTER} has 1 slices that stand or are being created."
    assert "RELEASING" in said[1] or "READY" in said[1]
    assert said[-3].startswith(f"{CLUSTER} is forgotten: ")
    assert stage.world.pools == []
    assert stage.world.store.clusters() == ()
    assert list(stage.world.store.every_slice(CLUSTER)) == []


def test_nothing_is_created_while_a_cluster_is_retired_and_users_are_told_why(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving(stage)
    monkeypatch.setattr("tpu_slices_cli.retiring.sleep", WorldGoesOn(stage, most=0))
    assert stage.slices(*COMMAND).exit_code == 130
    late = stage.world.jobset_appears("late")
    stage.world.settle(minutes=10)
    record = stage.world.record(late)
    assert (record.phase, record.reason) == (Phase.REFUSED, Reason.CLUSTER_RETIRED)
    assert record.message.endswith("no slice is created in it any more: moved to another.")
    assert stage.world.pools == []


def test_a_retirement_that_was_interrupted_can_be_taken_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    serving(stage)
    monkeypatch.setattr("tpu_slices_cli.retiring.sleep", WorldGoesOn(stage, most=0))
    stage.slices(*COMMAND)
    late = stage.world.jobset_appears("late")
    stage.world.settle(minutes=5)
    assert stage.world.record(late).reason is Reason.CLUSTER_RETIRED
    stage.output_of("resume", "--cluster", CLUSTER)
    stage.world.settle(minutes=10, until=lambda: late.bound == {0})
    assert late.bound == {0}


def test_an_interrupted_retirement_is_continued(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    serving(stage)
    monkeypatch.setattr("tpu_slices_cli.retiring.sleep", WorldGoesOn(stage, most=0))
    assert stage.slices(*COMMAND).exit_code == 130
    monkeypatch.setattr("tpu_slices_cli.retiring.sleep", WorldGoesOn(stage))
    assert "is forgotten" in stage.output_of(*COMMAND)
    assert "is forgotten: 0 documents" in stage.output_of(*COMMAND)


def test_a_pool_without_a_record_is_waited_for_until_the_sweep_has_deleted_it(stage: Stage) -> None:
    lost = stage.world.record(serving(stage))
    stage.world.store.remove_document(key_of(lost))
    said = stage.output_of(*COMMAND)
    assert f"{lost.pool}: a node pool without a record" in said
    assert "is forgotten" in said
    assert stage.world.pools == []


def test_a_pool_that_nothing_proves_ours_ends_it_undone_and_says_what_to_do(stage: Stage) -> None:
    lost = stage.world.record(serving(stage))
    stage.world.backend.replace_labels(lost.pool)
    stage.world.store.remove_document(key_of(lost))
    undone = stage.slices(*COMMAND)
    assert undone.exit_code == 1
    assert f"{CLUSTER} is not retired. {lost.pool}: a node pool with a name of ours" in undone.output
    assert "gcloud container node-pools delete NAME --cluster" in undone.output
    assert stage.world.pools == [lost.pool]
    assert stage.world.store.clusters() == (CLUSTER,)

    stage.world.backend.vanish(lost.pool)
    assert "is forgotten" in stage.output_of(*COMMAND)


def test_beside_such_a_pool_those_that_the_sweep_adopts_are_waited_for(stage: Stage) -> None:
    lost, theirs = stage.world.record(serving(stage)), "tpu-llama-slice-7-aaaaaaaaaaaaa-1"
    stage.world.store.remove_document(key_of(lost))
    stage.world.backend.steal(PoolName(theirs))
    undone = stage.slices(*COMMAND)
    assert (undone.exit_code, stage.world.pools) == (1, [theirs])
    assert f"{lost.pool}: a node pool without a record, which the sweep finds and adopts" in undone.output


def test_a_pool_whose_record_cannot_be_read_ends_it_undone(stage: Stage) -> None:
    record = stage.world.record(serving(stage))
    make_unreadable(stage.world, record)
    undone = stage.slices(*COMMAND)
    assert undone.exit_code == 1
    assert f"{record.pool}: its record cannot be read, so nothing deletes it" in undone.output


def test_a_cluster_without_settings_is_forgotten_only_if_nothing_stands(stage: Stage) -> None:
    serving(stage)
    stage.world.store.remove_document(settings_key(CLUSTER))
    refused = stage.slices(*COMMAND)
    assert (refused.exit_code, "run `slices configure FILE` first" in refused.output) == (1, True)
    assert len(stage.world.pools) == 1


def test_what_an_interrupted_end_left_is_deleted_by_the_next(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    serving(stage)
    monkeypatch.setattr("tpu_slices_cli.retiring.sleep", WorldGoesOn(stage, most=0))
    stage.slices(*COMMAND)
    stage.world.jobset_appears("late")
    stage.world.settle(minutes=5)
    stage.world.store.remove_document(settings_key(CLUSTER))
    assert "is forgotten" in stage.output_of(*COMMAND)
    assert list(stage.world.store.every_slice(CLUSTER)) == []


def test_a_slice_on_hold_is_waited_for(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    jobset = serving(stage)
    stage.output_of("hold", "research/llama")
    monkeypatch.setattr("tpu_slices_cli.retiring.sleep", WorldGoesOn(stage, most=5))
    assert stage.slices(*COMMAND).exit_code == 130
    assert stage.world.pools == [stage.world.record(jobset).pool]


def test_without_a_confirmation_nothing_happens(stage: Stage) -> None:
    jobset = serving(stage)
    refused = stage.slices(*COMMAND[:-1])
    assert (refused.exit_code, "use --yes" in refused.output) == (2, True)
    assert stage.world.record(jobset).phase is Phase.READY
