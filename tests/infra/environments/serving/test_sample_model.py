"""The sample model by ONNX Runtime, and its repository by Triton's own schema of configurations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from infra.environments.triton.serving.sample_model import COLOURS, MODEL, SIDE, main
from tests.infra.environments.serving.model_repository import Array, Model, load


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    assert main(["--into", str(tmp_path / "new" / "model_repository")]) == 0
    return tmp_path / "new" / "model_repository"


@pytest.fixture
def colours(repository: Path) -> Model:
    """Return the model as Triton would load it: name, backend, names, types and sizes agree with the graph."""
    return load(repository / MODEL)


def filled(*colours: tuple[float, float, float]) -> Array:
    """Return a picture of stripes of equal width."""
    image = np.empty((3, SIDE, SIDE), dtype=np.float32)
    for stripe, colour in zip(np.array_split(np.arange(SIDE), len(colours)), colours, strict=True):
        image[:, :, stripe] = np.array(colour, dtype=np.float32).reshape(3, 1, 1)
    return image


def shares(model: Model, *images: Array) -> list[dict[str, float]]:
    """Return the shares of each picture that are not 0."""
    rows = model.run(np.stack(images))
    return [
        {label: round(float(share), 3) for label, share in zip(model.labels, row, strict=True) if share > 0.0005}
        for row in rows
    ]


def test_a_repository_has_what_triton_expects_and_nothing_else(repository: Path) -> None:
    files = sorted(path.relative_to(repository).as_posix() for path in repository.rglob("*") if path.is_file())
    assert files == ["colours/1/model.onnx", "colours/config.pbtxt", "colours/labels.txt"]


def test_it_has_a_label_for_each_score(colours: Model) -> None:
    assert colours.labels == tuple(COLOURS)
    assert colours.output.shape == (-1, len(colours.labels))


@pytest.mark.parametrize("colour", COLOURS)
def test_an_image_of_one_colour_is_wholly_of_that_colour(colours: Model, colour: str) -> None:
    assert shares(colours, filled(COLOURS[colour])) == [{colour: 1.0}]


@pytest.mark.parametrize(
    ("pixel", "nearest"),
    [
        ((0.8, -0.7, -0.9), "red"),
        ((1.0, 0.3, -1.0), "yellow"),
        ((1.0, -0.3, -1.0), "red"),
        ((0.2, -0.1, 0.3), "grey"),
        ((0.6, 0.7, 0.9), "white"),
    ],
)
def test_a_pixel_is_taken_for_the_nearest_colour(
    colours: Model, pixel: tuple[float, float, float], nearest: str
) -> None:
    distances = {label: sum((a - b) ** 2 for a, b in zip(pixel, c, strict=True)) for label, c in COLOURS.items()}
    assert min(distances, key=lambda label: distances[label]) == nearest
    [found] = shares(colours, filled(pixel))
    assert found[nearest] > 0.99


def test_the_scores_are_the_shares_of_the_image(colours: Model) -> None:
    red, blue, white = COLOURS["red"], COLOURS["blue"], COLOURS["white"]
    assert shares(colours, filled(red, red, blue, white)) == [{"red": 0.5, "blue": 0.25, "white": 0.25}]


def test_the_images_of_a_batch_are_told_apart(colours: Model) -> None:
    images = [filled(COLOURS[each]) for each in ("green", "cyan", "magenta")]
    assert shares(colours, *images) == [{"green": 1.0}, {"cyan": 1.0}, {"magenta": 1.0}]


def test_its_bytes_are_the_same_each_time(repository: Path, tmp_path: Path) -> None:
    main(["--into", str(tmp_path / "again")])
    first, again = ((each / MODEL / "1" / "model.onnx").read_bytes() for each in (repository, tmp_path / "again"))
    assert first == again
