"""The example of a Triton client, run as a user does, against a stand-in that speaks KServe's protocol."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from infra.environments.triton.serving import sample_model
from infra.local.plan import REPOSITORY
from tests.infra.environments.serving.kserve import Triton, serving

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

CLIENT = REPOSITORY / "examples" / "triton" / "classify.py"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    sample_model.write(tmp_path / "models")
    return tmp_path / "models"


@pytest.fixture
def triton(repository: Path) -> Iterator[Triton]:
    with serving(repository) as started:
        yield started


def saved(folder: Path, name: str = "image.png", mode: str = "RGB", size: tuple[int, int] = (400, 300)) -> Path:
    """Save a picture, of which the left quarter is blue and the rest red."""
    image = Image.new("RGB", size, "red")
    image.paste("blue", (0, 0, size[0] // 4, size[1]))
    image.convert(mode).save(folder / name)
    return folder / name


def run(address: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, CLIENT, "--url", address, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)


def test_it_prints_the_classes_the_likeliest_first(triton: Triton, tmp_path: Path) -> None:
    said = run(triton.address, "--classes", "2", saved(tmp_path))
    assert said.stderr == ""
    lines = [line.split() for line in said.stdout.splitlines()]
    assert [label for _, label in lines] == ["red", "blue"]
    assert [float(score) for score, _ in lines] == pytest.approx([0.75, 0.25], abs=0.01)


@pytest.mark.parametrize(("name", "mode"), [("p.jpg", "RGB"), ("p.gif", "P"), ("p.png", "RGBA"), ("p.tiff", "CMYK")])
def test_it_reads_images_of_many_formats(triton: Triton, tmp_path: Path, name: str, mode: str) -> None:
    said = run(triton.address, "--classes", "1", saved(tmp_path, name, mode))
    assert (said.returncode, said.stdout.split()[1:]) == (0, ["red"])


def test_it_asks_the_version_that_was_named(triton: Triton, tmp_path: Path) -> None:
    assert run(triton.address, "--version", "canary", saved(tmp_path)).returncode == 0
    assert set(triton.versions) == {"canary"}


def test_a_model_without_batches_is_asked_for_one_image(repository: Path, tmp_path: Path) -> None:
    single(repository)
    with serving(repository) as triton:
        said = run(triton.address, "--classes", "1", saved(tmp_path))
    assert (said.returncode, said.stderr, said.stdout.split()[1:]) == (0, "", ["red"])


def single(repository: Path) -> None:
    """Let the model take single pictures, each as a batch of one in its graph."""
    config = repository / "colours" / "config.pbtxt"
    text = config.read_text().replace("max_batch_size: 8", "max_batch_size: 0").replace("dynamic_batching { }", "")
    for dims in ("3, 224, 224", "9"):
        text = text.replace(f"dims: [ {dims} ]", f"dims: [ {dims} ] reshape {{ shape: [ 1, {dims} ] }}")
    config.write_text(text)


def test_a_class_without_a_label_is_printed_by_its_number(repository: Path, tmp_path: Path) -> None:
    (repository / "colours" / "labels.txt").write_text("black\n")
    with serving(repository) as triton:
        said = run(triton.address, "--classes", "1", saved(tmp_path))
    assert said.stdout.split()[1:] == ["class", "4"]


def test_nobody_at_the_address_is_told_as_such(tmp_path: Path) -> None:
    said = run("127.0.0.1:1", saved(tmp_path))
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith("There is no Triton at 127.0.0.1:1: ")


def test_a_model_that_is_not_loaded_is_named(triton: Triton, tmp_path: Path) -> None:
    said = run(triton.address, "--model", "densenet_onnx", saved(tmp_path))
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith('Triton has not loaded the model "densenet_onnx"')


def test_what_triton_refuses_is_told_in_its_words(triton: Triton, tmp_path: Path) -> None:
    triton.breaks_down = True
    said = run(triton.address, saved(tmp_path))
    assert (said.returncode, said.stderr) == (1, "Triton refused it: onnx runtime error 1: out of memory\n")


@pytest.mark.parametrize("content", [None, b"no picture"])
def test_what_is_no_image_is_refused_by_its_name(triton: Triton, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "mug.jpg"
    if content:
        path.write_bytes(content)
    said = run(triton.address, path)
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith(f"{path} cannot be read as a picture: ")
