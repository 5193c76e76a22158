"""A model repository as Triton reads it: its configuration by Triton's own schema, its models run by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from google.protobuf import text_format
from numpy.typing import NDArray
from tritonclient.grpc import model_config_pb2

Array = NDArray[Any]
TYPES = {"TYPE_FP32": ("FP32", "tensor(float)")}
"""Of a configuration's type: the protocol's, and ONNX Runtime's."""


@dataclass(frozen=True)
class Tensor:
    name: str
    datatype: str
    shape: tuple[int, ...]
    """With -1 for the batch, if the model has one."""
    inside: tuple[int, ...]
    """The same, as the graph has it: a configuration may reshape it."""


@dataclass(frozen=True)
class Model:
    """A model that was loaded: its configuration agrees with its graph."""

    name: str
    versions: tuple[str, ...]
    most: int
    """How many pictures a request may have; 0 for a model without batches."""
    input: Tensor
    output: Tensor
    labels: tuple[str, ...]
    session: Any

    def run(self, values: Array) -> Array:
        [answer] = self.session.run([self.output.name], {self.input.name: values.reshape(self.input.inside)})
        found: Array = answer.reshape(self.output.shape)
        return found


def _tensor(described: Any, batched: bool) -> Tensor:
    datatype, _ = TYPES[model_config_pb2.DataType.Name(described.data_type)]
    first = (-1,) if batched else ()
    shape, inside = tuple(described.dims), tuple(described.reshape.shape or described.dims)
    return Tensor(described.name, datatype, (*first, *shape), (*first, *inside))


def _agrees(tensor: Tensor, graph: Any) -> bool:
    fits = [not isinstance(size, int) or size == want for size, want in zip(graph.shape, tensor.inside, strict=True)]
    return graph.name == tensor.name and all(fits) and (tensor.datatype, graph.type) in TYPES.values()


def load(folder: Path) -> Model:
    """Return the model of a folder, of its newest version. Raises AssertionError if Triton would not load it."""
    config: Any = text_format.Parse((folder / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())
    assert config.name == folder.name
    assert config.backend == "onnxruntime"
    versions = sorted((each.name for each in folder.iterdir() if each.name.isdecimal()), key=int)
    session = onnxruntime.InferenceSession(
        (folder / versions[-1] / "model.onnx").read_bytes(), providers=["CPUExecutionProvider"]
    )
    batched = config.max_batch_size > 0
    [read], [written] = (
        (_tensor(each, batched) for each in config.input),
        (_tensor(each, batched) for each in config.output),
    )
    [[graph_read], [graph_written]] = session.get_inputs(), session.get_outputs()
    assert _agrees(read, graph_read), f"{read} is not {graph_read}"
    assert _agrees(written, graph_written), f"{written} is not {graph_written}"
    labels = tuple((folder / config.output[0].label_filename).read_text().splitlines())
    return Model(config.name, tuple(versions), config.max_batch_size, read, written, labels, session)


def load_all(repository: Path) -> Mapping[str, Model]:
    return {folder.name: load(folder) for folder in repository.iterdir() if folder.is_dir()}


def classified(model: Model, row: Array, count: int) -> list[str]:
    """Return the largest scores as Triton's classification extension has them: SCORE:INDEX[:LABEL]."""
    largest = np.argsort(-row, kind="stable")[:count]
    return [
        f"{row[index]:f}:{index}" + (f":{model.labels[index]}" if index < len(model.labels) else "")
        for index in largest
    ]
