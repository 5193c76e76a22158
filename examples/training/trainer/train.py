"""Learns to add: a small network, trained data-parallel on every chip of every slice, or on a laptop's processors.

    python dataset.py sums.txt
    python train.py --data sums.txt --output run

--data and --output are local paths or gs://BUCKET/...; --output gets `checkpoints` and `tensorboard`. Whoever starts it
again with the same --output continues from the last checkpoint.

In a JobSet on GKE every process knows the others by its environment, which GKE sets. Elsewhere name them:
--coordinator HOST:PORT --processes 2 --process 0, and the same with --process 1.
"""

import argparse
import io
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import fsspec
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from tensorboardX import SummaryWriter

WIDTH, RATE, MOMENTUM, BATCH = 256, 0.3, 0.9, 512
NUMBERS, SUM = [0, 1, 3, 4], [6, 7, 8]
"""Where the digits stand in a line such as 12+34=046."""
State = dict[str, Any]


def started(seed: int = 0) -> State:
    """Return the weights, and their momentum, before the first step."""
    keys = jax.random.split(jax.random.key(seed), 2)
    shapes = {"hidden": (10 * len(NUMBERS), WIDTH), "digits": (WIDTH, 10 * len(SUM))}
    weights = {
        name: jax.random.normal(key, shape) * (2 / shape[0]) ** 0.5
        for key, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    return {"weights": weights, "momentum": jax.tree.map(jnp.zeros_like, weights)}


def loss_of(weights: State, lines: jax.Array) -> jax.Array:
    """Return the mean cross-entropy of the digits of the sums."""
    given, asked = lines[:, jnp.array(NUMBERS)], lines[:, jnp.array(SUM)]
    hidden = jax.nn.relu(jax.nn.one_hot(given, 10).reshape(len(lines), -1) @ weights["hidden"])
    guessed = jax.nn.log_softmax((hidden @ weights["digits"]).reshape(len(lines), len(SUM), 10))
    return -jnp.take_along_axis(guessed, asked[..., None], axis=-1).mean()


@partial(jax.jit, donate_argnums=0)
def step(state: State, lines: jax.Array) -> tuple[State, jax.Array]:
    """Return the state after one batch, and its loss.

    The batch lies on all devices in parts, the state on each in full: so XLA adds up the gradients over all devices.
    """
    loss, gradients = jax.value_and_grad(loss_of)(state["weights"], lines)
    momentum = jax.tree.map(lambda old, new: MOMENTUM * old + new, state["momentum"], gradients)
    weights = jax.tree.map(lambda weight, change: weight - RATE * change, state["weights"], momentum)
    return {"weights": weights, "momentum": momentum}, loss


def everywhere(*axes: str) -> NamedSharding:
    """Return where an array lies: on all devices of all processes, in parts along `axes`, else on each in full."""
    return NamedSharding(jax.make_mesh((jax.device_count(),), ("data",)), PartitionSpec(*axes))


def batches(path: str, first: int, last: int) -> Iterator[jax.Array]:
    """Yield the batches of these steps, the same for any number of processes: each puts its part on its devices."""
    with fsspec.open(path, "rb") as file:
        lines = np.frombuffer(file.read(), np.uint8).reshape(-1, len("12+34=046\n")) - ord("0")
    for number in range(first, last):
        chosen = np.random.default_rng(number).integers(len(lines), size=BATCH)
        part = np.array_split(chosen, jax.process_count())[jax.process_index()]
        yield jax.make_array_from_process_local_data(
            everywhere("data"), lines[part].astype(np.int32), (BATCH, lines.shape[1])
        )


def save(folder: str, number: int, state: State) -> None:
    """Write a checkpoint. It has its name when it is whole: a process that is killed meanwhile leaves none."""
    files, path = fsspec.url_to_fs(folder, auto_mkdir=True)
    arrays = {f"{kind}/{name}": np.asarray(array) for kind, each in state.items() for name, array in each.items()}
    whole = io.BytesIO()
    np.savez(whole, **arrays)
    files.pipe_file(f"{path}/unfinished", whole.getvalue())
    files.mv(f"{path}/unfinished", f"{path}/{number:08}.npz")


def restored(folder: str) -> tuple[int, State]:
    """Return the number of steps that were made, and the state after them: those of the last checkpoint, if any."""
    files, path = fsspec.url_to_fs(folder)
    found = sorted(files.glob(f"{path}/*.npz"))
    state = started()
    if not found:
        return 0, state
    with np.load(io.BytesIO(files.cat_file(found[-1]))) as saved:
        arrays = {kind: {name: jnp.array(saved[f"{kind}/{name}"]) for name in each} for kind, each in state.items()}
    return int(found[-1].rpartition("/")[2].removesuffix(".npz")), arrays


def train(asked: argparse.Namespace) -> None:
    """Train from the last checkpoint to the last step."""
    first = jax.process_index() == 0
    made, state = restored(f"{asked.output}/checkpoints")
    print(
        f"process {jax.process_index()} of {jax.process_count()}: {jax.device_count()} devices, step {made}", flush=True
    )
    state = jax.device_put(state, everywhere())
    board = SummaryWriter(f"{asked.output}/tensorboard", purge_step=made) if first else None
    for number, lines in enumerate(batches(asked.data, made, asked.steps), start=made + 1):
        state, loss = step(state, lines)
        if board is not None and number % asked.every == 0:
            board.add_scalar("loss", float(loss), number)
            board.flush()
            save(f"{asked.output}/checkpoints", number, state)
            print(f"step {number}: loss {loss:.4f}", flush=True)
    if board is not None:
        board.close()


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--every", type=int, default=100, help="steps from one checkpoint, and line, to the next")
    parser.add_argument("--coordinator")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--process", type=int)
    return parser.parse_args()


if __name__ == "__main__":
    asked = arguments()
    if asked.coordinator or "TPU_WORKER_HOSTNAMES" in os.environ:
        jax.distributed.initialize(asked.coordinator, asked.processes, asked.process)
    train(asked)
