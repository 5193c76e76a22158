"""`--cluster`: a cluster that does not exist is not one without slices; a project without clusters is an error."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, settings
from tests.cli.stage import Stage, serving
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.wire.cluster_settings import accepted_key, settings_key

COMMANDS = (["list"], ["timeline", "-f", "-"], ["explain", "research/llama"], ["hold", "research/llama"])
ASKED = "project demo-project (by --project), Firestore database (default)"


def without_settings(stage: Stage) -> None:
    for place in (settings_key(CLUSTER), accepted_key(CLUSTER)):
        stage.world.store.remove_document(place)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_unknown_cluster_is_an_error_that_names_those_there_are(stage: Stage, command: list[str]) -> None:
    stage.world.store.put_settings(settings(cluster=ClusterId("prod")))
    result = stage.slices(*command, "--cluster", "demmo")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"no cluster demmo in {ASKED}: did you mean demo? there are demo, prod" in result.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_project_without_clusters_is_an_error_that_says_which_was_asked_and_why(
    stage: Stage, command: list[str]
) -> None:
    without_settings(stage)
    result = stage.slices(*command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"no cluster is configured in {ASKED}" in result.stderr


def test_a_plan_for_an_unknown_cluster_names_those_there_are(stage: Stage) -> None:
    result = stage.slices("plan", "-f", "-", "--cluster", "demmo", input="kind: JobSet")
    assert result.exit_code == 2
    assert f"neither a file nor a cluster that is configured in {ASKED}: did you mean demo?" in result.stderr


def test_slices_of_a_cluster_whose_settings_are_gone_are_listed(stage: Stage) -> None:
    serving(stage)
    without_settings(stage)
    for arguments in ([], ["--cluster", "demo"]):
        assert "research/llama-slice-0" in stage.output_of("list", *arguments)
