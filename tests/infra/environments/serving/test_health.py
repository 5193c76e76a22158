"""The health check of the environment's build, against a stand-in that serves the sample model by KServe's protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.environments.triton.serving import health, sample_model
from tests.infra.environments.serving.kserve import Triton, serving
from tpu_standins.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    sample_model.write(tmp_path)
    return tmp_path


@pytest.fixture
def triton(repository: Path) -> Iterator[Triton]:
    with serving(repository) as started:
        yield started


def checked(triton: Triton, *arguments: str, patience: float = 0) -> int:
    return health.main(["--url", triton.url, "--patience", str(patience), *arguments], sleep=lambda _: None)


def test_a_triton_that_answers_rightly_is_healthy(triton: Triton, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(triton) == 0
    assert capsys.readouterr().out == f"{triton.url} serves colours: red 0.75, blue 0.25\n"
    assert triton.versions == [None] * 3


def test_each_request_names_the_version_that_is_checked(triton: Triton) -> None:
    assert checked(triton, "--version", "canary") == 0
    assert triton.versions == ["canary"] * 3


def test_it_is_waited_for_until_it_is_ready(triton: Triton) -> None:
    triton.ready_after = 3
    assert checked(triton, patience=PATIENCE_SECONDS) == 0


def test_one_that_is_not_ready_in_time_fails_with_its_status(
    triton: Triton, capsys: pytest.CaptureFixture[str]
) -> None:
    triton.ready_after = 1000
    assert checked(triton) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "Triton is not ready: status 503\n" in told.err
    assert "kubectl logs" in told.err


def test_nobody_at_the_address_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    code = health.main(["--url", "http://127.0.0.1:1", "--patience", "0"])
    assert code == 1
    assert "http://127.0.0.1:1 does not answer: [Errno 111] Connection refused" in capsys.readouterr().err


def test_a_model_that_is_not_loaded_fails_with_the_command_that_looks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path) as empty:
        assert checked(empty) == 1
    told = capsys.readouterr().err
    assert "the model colours is not loaded: status 404" in told
    assert "gcloud storage ls" in told


def test_an_inference_that_breaks_down_fails_with_what_triton_said(
    triton: Triton, capsys: pytest.CaptureFixture[str]
) -> None:
    triton.breaks_down = True
    assert checked(triton) == 1
    assert 'gave no classes: status 400 {"error": "onnx runtime error 1: out of memory"}' in capsys.readouterr().err


def test_scores_without_labels_are_no_answer(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "colours" / "labels.txt").write_text("")
    with serving(repository) as unlabelled:
        assert checked(unlabelled) == 1
    assert "gave no classes: status 200" in capsys.readouterr().err


def test_a_model_that_answers_something_else_fails(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = repository / "colours" / "labels.txt"
    labels.write_text(labels.read_text().replace("red", "crimson"))
    with serving(repository) as another:
        assert checked(another) == 1
    assert "answered {'crimson': 0.75, 'blue': 0.25} instead of {'red': 0.75, 'blue': 0.25}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "url", ["192.0.2.7", "ftp://192.0.2.7", "http://", "http://192.0.2.7:http", "http://192.0.2.7/v2"]
)
def test_what_is_no_url_of_a_server_is_refused_at_once(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        health.main(["--url", url])
    assert ended.value.code == 2
    assert "is not http://ADDRESS or http://ADDRESS:PORT" in capsys.readouterr().err


def test_the_right_classes_with_other_scores_fail(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = repository / "colours" / "labels.txt"
    names = {"red": "blue", "blue": "red"}
    labels.write_text("".join(f"{names.get(each, each)}\n" for each in labels.read_text().splitlines()))
    with serving(repository) as swapped:
        assert checked(swapped) == 1
    assert "answered {'blue': 0.75, 'red': 0.25}" in capsys.readouterr().err
