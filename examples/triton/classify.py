"""Classify a picture by a model that Triton serves, and print its classes, the likeliest first.

python examples/triton/classify.py --url ADDRESS --model colours picture.jpg
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import InferenceServerException

Pixels = NDArray[np.float32]
TIMEOUT_SECONDS = 30.0


class Refused(Exception):
    """There is no answer; the message is for whoever asked."""


@dataclass(frozen=True, slots=True)
class Model:
    """A classifier of pictures, as Triton describes it."""

    name: str
    input: str
    output: str
    shape: tuple[int, ...]
    """Of the input: channels, height and width, after the batch if the model takes several pictures at a time."""

    @property
    def size(self) -> tuple[int, int]:
        """Return width and height."""
        return self.shape[-1], self.shape[-2]


def described(client: InferenceServerClient, name: str, headers: dict[str, str]) -> Model:
    """Return a model by Triton's own description. Raises Refused if it is no classifier of pictures."""
    if not client.is_model_ready(name, headers=headers):
        raise Refused(f'Triton has not loaded the model "{name}": is it in the model repository? Its log tells more.')
    metadata = client.get_model_metadata(name, headers=headers)
    try:
        [read], [written] = metadata["inputs"], metadata["outputs"]
    except ValueError:
        raise Refused(f'"{name}" has more than one input or output: it is no classifier of pictures') from None
    shape = tuple(map(int, read["shape"]))
    if read["datatype"] != "FP32" or len(shape) not in {3, 4} or shape[-3] != 3 or min(shape[-2:]) < 1:
        raise Refused(f'"{name}" takes {read["datatype"]} {list(shape)}: not the red, green and blue of a picture')
    return Model(name, read["name"], written["name"], shape)


def pixels(path: Path, model: Model) -> Pixels:
    """Return a picture as a model takes it: red, green and blue, each from -1 to 1. Raises Refused."""
    try:
        with Image.open(path) as opened:
            resized = opened.convert("RGB").resize(model.size, Image.Resampling.BILINEAR)
    except (OSError, UnidentifiedImageError) as wrong:
        raise Refused(f"{path} cannot be read as a picture: {wrong}") from wrong
    values = np.asarray(resized, dtype=np.float32) / 127.5 - 1
    channels_first = np.ascontiguousarray(values.transpose(2, 0, 1))
    return channels_first[np.newaxis] if len(model.shape) == 4 else channels_first


def classes(
    client: InferenceServerClient, model: Model, image: Pixels, count: int, headers: dict[str, str]
) -> list[str]:
    """Return the likeliest classes, each as SCORE:INDEX:LABEL."""
    sent = InferInput(model.input, list(image.shape), "FP32")
    sent.set_data_from_numpy(image)
    asked = InferRequestedOutput(model.output, class_count=count)
    answer = client.infer(model.name, [sent], outputs=[asked], headers=headers).as_numpy(model.output)
    return [each.decode() for each in answer.flatten()]


def classify(asked: argparse.Namespace) -> list[str]:
    """Return the lines to print. Raises Refused."""
    headers = {"triton-version": asked.version} if asked.version else {}
    client = InferenceServerClient(asked.url, connection_timeout=TIMEOUT_SECONDS, network_timeout=TIMEOUT_SECONDS)
    try:
        model = described(client, asked.model, headers)
        found = classes(client, model, pixels(asked.image, model), asked.classes, headers)
    except InferenceServerException as wrong:
        raise Refused(f"Triton refused it: {wrong.message()}") from wrong
    except OSError as wrong:
        raise Refused(
            f"There is no Triton at {asked.url}: {wrong}. Is it the gateway's address, HOST or HOST:PORT?"
        ) from wrong
    finally:
        client.close()
    parts = (each.split(":", 2) for each in found)
    return [f"{float(score):.4f}  {label[0] if label else f'class {index}'}" for score, index, *label in parts]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("image", type=Path, help="a picture, in any format")
    parser.add_argument("--url", required=True, metavar="HOST[:PORT]", help="of the ingress gateway")
    parser.add_argument("--model", default="colours")
    parser.add_argument("--classes", type=int, default=3, help="how many to print")
    parser.add_argument("--version", choices=("stable", "canary"), help="of Triton, whatever the weights are")
    try:
        lines = classify(parser.parse_args(arguments))
    except Refused as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
