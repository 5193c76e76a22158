"""The example of a Triton client, run as a user does, against a stand-in that speaks KServe's protocol."""

from __future__ import annotations

import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from PIL import Image

from examples.triton.classify import main
from infra.environments.triton.serving import sample_model
from infra.local.plan import REPOSITORY
from tests.infra.environments.serving.kserve import Triton, serving

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]

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


@dataclass(frozen=True, slots=True)
class Said:
    returncode: int
    stdout: str
    stderr: str


def run(address: str, *arguments: str | Path) -> Said:
    """Run the client in this process: a process of its own takes a second to import what it needs."""
    with redirect_stdout(StringIO()) as output, redirect_stderr(StringIO()) as errors:
        code = main(["--url", address, *map(str, arguments)])
    return Said(code, output.getvalue(), errors.getvalue())


def test_it_prints_the_classes_the_likeliest_first(triton: Triton, tmp_path: Path) -> None:
    command = (sys.executable, CLIENT, "--url", triton.address, "--classes", "2", saved(tmp_path))
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (0, "")
    lines = [line.split() for line in said.stdout.splitlines()]
    assert [label for _, label in lines] == ["red", "blue"]
    assert [float(score) for score, _ in lines] == pytest.approx([0.75, 0.25], abs=0.01)


def test_rows_stay_rows_and_columns_columns(triton: Triton, tmp_path: Path) -> None:
    assert run(triton.address, saved(tmp_path)).returncode == 0
    [[image]] = triton.inputs
    assert image.shape == (3, 224, 224)
    left, right = image[:, :, :50], image[:, :, 60:]
    assert [{*left[channel].flat} for channel in range(3)] == [{-1.0}, {-1.0}, {1.0}]
    assert [{*right[channel].flat} for channel in range(3)] == [{1.0}, {-1.0}, {-1.0}]


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


def test_one_that_is_not_ready_is_told_as_such(triton: Triton, tmp_path: Path) -> None:
    triton.ready_after = 1
    said = run(triton.address, saved(tmp_path))
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith("Triton is not ready: ")


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9.9\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"])
def test_what_is_no_triton_is_told_as_such(tmp_path: Path, answer: bytes) -> None:
    with answering(answer) as address:
        said = run(address, saved(tmp_path))
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith(f"There is no Triton at {address}: ")


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Answer every connection with the same, whatever it asks."""

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while answer.startswith(b"HTTP") and self.request.recv(4096):
                self.request.sendall(answer)
            self.request.sendall(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("url", ["http://{}", "http://{}/"])
def test_the_address_may_be_written_as_a_url(triton: Triton, tmp_path: Path, url: str) -> None:
    assert run(url.format(triton.address), saved(tmp_path)).returncode == 0


@pytest.mark.parametrize("url", ["https://{}", "http://{}/v2"])
def test_another_url_is_refused(triton: Triton, tmp_path: Path, url: str) -> None:
    said = run(url.format(triton.address), saved(tmp_path))
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.endswith("is not an address of a gateway: HOST or HOST:PORT\n")


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
