"""The sample model: tells which colours a picture consists of. Written without a library, so that a build needs none.

Each pixel is taken for the nearest of nine colours; the score of a colour is its share of the picture. A picture comes
as clients of image classifiers send it: 3 x 224 x 224, red, green and blue, each from -1 to 1.

    python -m infra.environments.triton.serving.sample_model --into build/model_repository

writes a model repository of this one model: colours/config.pbtxt, colours/labels.txt, colours/1/model.onnx. The bytes
are the same each time.
"""

import argparse
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

MODEL, INPUT, OUTPUT = "colours", "picture", "shares"
SIDE = 224
COLOURS: Mapping[str, tuple[int, int, int]] = {
    "black": (-1, -1, -1),
    "blue": (-1, -1, 1),
    "green": (-1, 1, -1),
    "cyan": (-1, 1, 1),
    "red": (1, -1, -1),
    "magenta": (1, -1, 1),
    "yellow": (1, 1, -1),
    "white": (1, 1, 1),
    "grey": (0, 0, 0),
}
SHARPNESS = 20.0
"""How clearly the nearest colour wins: a pixel of that very colour is taken for another by less than 10^-20."""

CONFIG = f"""\
name: "{MODEL}"
backend: "onnxruntime"
max_batch_size: 8
input [
  {{
    name: "{INPUT}"
    data_type: TYPE_FP32
    format: FORMAT_NCHW
    dims: [ 3, {SIDE}, {SIDE} ]
  }}
]
output [
  {{
    name: "{OUTPUT}"
    data_type: TYPE_FP32
    dims: [ {len(COLOURS)} ]
    label_filename: "labels.txt"
  }}
]
dynamic_batching {{ }}
"""
"""As in https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/user_guide/model_configuration.html"""

# The fields' numbers and the types' are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
_FLOAT, _INTS = 1, 7
_IR_VERSION, _OPSET = 8, 17


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    encoded = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(encoded)) + encoded


def _node(operator: str, inputs: Iterable[str], output: str, attribute: bytes = b"") -> bytes:
    named = b"".join(_bytes(1, each) for each in inputs)
    return named + _bytes(2, output) + _bytes(3, output) + _bytes(4, operator) + attribute


def _integers(name: str, values: Sequence[int]) -> bytes:
    attribute = _bytes(1, name) + b"".join(_number(8, value) for value in values) + _number(20, _INTS)
    return _bytes(5, attribute)


def _integer(name: str, value: int) -> bytes:
    return _bytes(5, _bytes(1, name) + _number(3, value) + _number(20, 2))


def _tensor(name: str, shape: Sequence[int], values: Sequence[float]) -> bytes:
    dims = b"".join(_number(1, size) for size in shape)
    return dims + _number(2, _FLOAT) + _bytes(8, name) + _bytes(9, struct.pack(f"<{len(values)}f", *values))


def _value(name: str, shape: Sequence[int]) -> bytes:
    """Return an input or an output, of any number of such: the batch."""
    sizes = [_bytes(2, "batch"), *(_number(1, size) for size in shape)]
    dims = b"".join(_bytes(1, size) for size in sizes)
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, _FLOAT) + _bytes(2, dims)))


def model() -> bytes:
    """Return the ONNX model.

    Of all colours c, the one nearest to a pixel x has the largest 2xc - cc: a linear layer over each pixel. Its softmax
    is all but 1 for that colour and 0 for the others, and the mean over all pixels is the colours' shares.
    """
    weights = [2 * SHARPNESS * part for colour in COLOURS.values() for part in colour]
    biases = [-SHARPNESS * sum(part * part for part in colour) for colour in COLOURS.values()]
    nodes = (
        _node("Conv", (INPUT, "weights", "biases"), "nearness", _integers("kernel_shape", (1, 1))),
        _node("Softmax", ("nearness",), "likeness", _integer("axis", 1)),
        _node("GlobalAveragePool", ("likeness",), "means"),
        _node("Flatten", ("means",), OUTPUT, _integer("axis", 1)),
    )
    tensors = (_tensor("weights", (len(COLOURS), 3, 1, 1), weights), _tensor("biases", (len(COLOURS),), biases))
    graph = (
        b"".join(_bytes(1, node) for node in nodes)
        + _bytes(2, MODEL)
        + b"".join(_bytes(5, tensor) for tensor in tensors)
        + _bytes(11, _value(INPUT, (3, SIDE, SIDE)))
        + _bytes(12, _value(OUTPUT, (len(COLOURS),)))
    )
    return _number(1, _IR_VERSION) + _bytes(7, graph) + _bytes(8, _number(2, _OPSET))


def write(repository: Path) -> None:
    """Write the model into a model repository, which is created."""
    folder = repository / MODEL
    (folder / "1").mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text(CONFIG, encoding="utf-8")
    (folder / "labels.txt").write_text("".join(f"{colour}\n" for colour in COLOURS), encoding="utf-8")
    (folder / "1" / "model.onnx").write_bytes(model())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="sample_model", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--into", required=True, type=Path, help="the model repository, which is created")
    write(parser.parse_args(arguments).into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
