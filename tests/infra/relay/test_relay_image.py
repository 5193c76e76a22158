"""The relay's image: what its Dockerfile copies and installs is what the relay needs, and nothing else.

Its libraries are installed from its lock alone, and the relay is run with them, from the sources that are copied.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import Distribution, distributions
from pathlib import Path

import grimp
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.infra.builds.libraries import install
from tests.infra.metadata import GET_TOKEN, TOKEN, asking, metadata
from tests.infra.sources import ROOT, STEPS, on_hub, pins
from tests.local.served import serving
from tests.relay.attack.stage import Sources, running
from tests.relay.objects import Json
from tests.relay.test_events import update
from tests.relay.test_relay import DEMO, Stage, workload
from tests.relay.webhook.process import site
from tests.relay.webhook.test_process import is_placed
from tpu_slices.domain.model.facts import WorkloadChanged, WorkloadState
from tpu_standins.clients.api import Api
from tpu_standins.ports import free_ports
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

FOLDER = ROOT / "relay" / "image"
DOCKERFILE = (FOLDER / "Dockerfile").read_text()
LOCK = FOLDER / "requirements.txt"
RECORD = """
import json, os, runpy, sys
leave = os._exit
def record(code):
    files = [getattr(module, "__file__", None) for module in sys.modules.values()]
    with open(os.environ["LOADED"], "w") as file:
        json.dump([each for each in files if each], file)
    leave(code)
os._exit = record
runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
"""
"""Runs a module, and writes the files of all modules that were imported to the end."""


def is_handled(line: Json) -> bool:
    return (line["event"], line.get("kind")) == ("message.handled", "SliceUpdate")


def admitted() -> list[Path]:
    """Return the files that Docker is sent: of all patterns that fit a file or its folder, the last counts."""
    lines = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
    patterns = [(regex(line.removeprefix("!")), line) for line in lines if line and not line.startswith("#")]
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    def is_admitted(file: str) -> bool:
        fitting = [line for pattern, line in patterns if pattern.fullmatch(file)]
        return bool(fitting) and fitting[-1].startswith("!") and (ROOT / file).is_file()

    return [Path(file) for file in listed.stdout.splitlines() if is_admitted(file)]


def regex(pattern: str) -> re.Pattern[str]:
    """Return what a pattern of a dockerignore file means: `*` is within a folder, `**/` at any depth."""
    parts = (re.escape(part).replace(r"\*", "[^/]*") for part in pattern.split("**/"))
    return re.compile("(.*/)?".join(parts) + "(/.*)?")


@dataclass(frozen=True)
class Image:
    """What the image has in /app."""

    app: Path

    @property
    def site(self) -> Path:
        return self.app / "site"

    @cached_property
    def libraries(self) -> list[Distribution]:
        return list(distributions(path=[str(self.site)]))

    def python(self, *arguments: str) -> tuple[str, ...]:
        """Return a command of a Python that has no other libraries."""
        return (sys.executable, "-S", *arguments)

    def environment(self, **more: str) -> dict[str, str]:
        return {"PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1", **more}

    def used(self, loaded: list[str]) -> set[str]:
        """Return the libraries that these files are of."""
        files = {Path(each) for each in loaded}
        return {
            library.name
            for library in self.libraries
            if any(Path(str(library.locate_file(each))) in files for each in library.files or ())
        }


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Do what the Dockerfile does."""
    app = tmp_path_factory.mktemp("image") / "app"
    install(LOCK, app / "site", "--no-deps")
    for removed in re.findall(r"^RUN rm -r (site/\S+)$", DOCKERFILE, re.MULTILINE):
        shutil.rmtree(app / removed)
    for file in admitted():
        name = file.relative_to("shared") if file.parts[0] == "shared" else file
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, app / name)
    return Image(app)


@pytest.fixture
def stage(tmp_path: Path, pubsub_emulator: str, project_id: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
    with serving(tmp_path) as served:
        yield Stage(served, project_id, pubsub_emulator)


def loaded_by_the_webhook(image: Image, stage: Stage, folder: Path) -> list[str]:
    """Run the webhook until it serves; return the files of all modules that it imported."""
    sources, loaded = Sources(image.app, image.python("-c", RECORD, "relay.webhook")), folder / "webhook.json"
    (port,) = free_ports(1)
    with site(stage.served.kubeconfig, folder) as where:
        with where.replica(port, sources, **image.environment(LOADED=str(loaded))):
            where.call(port, conditions=False)
            with closing(Api.of(stage.served.kubeconfig)) as api:
                until(lambda: is_placed(api), "the webhook to be called")
        where.uncall()
    files: list[str] = json.loads(loaded.read_text())
    return files


@pytest.mark.real
def test_the_relay_works_with_what_is_locked_and_needs_all_of_it(image: Image, stage: Stage, tmp_path: Path) -> None:
    loaded = tmp_path / "loaded.json"
    sources = Sources(image.app, image.python("-c", RECORD, "relay"))
    sent = update()
    with running(stage.served, stage.project, sources, **image.environment(LOADED=str(loaded))) as relay:
        relay.until(lambda: relay.ready)
        stage.apply(workload())
        owner = stage.until(WorkloadChanged, lambda fact: fact.state is WorkloadState.ACTIVE).workload.owner
        stage.publisher.announce(DEMO, [replace(sent, job=replace(sent.job, owner=owner))])
        relay.until(lambda: any(is_handled(line) for line in relay.lines))
        assert [event["source"]["component"] for event in stage.read("events")["items"]] == ["tpu-slice-provisioner"]
        assert relay.probe("readyz") == ["ok"]
    used = image.used(json.loads(loaded.read_text())) | image.used(loaded_by_the_webhook(image, stage, tmp_path))
    unneeded = {each.name for each in image.libraries} - used
    assert unneeded == set(), "locked, but never imported: relay/image/overrides.txt leaves such libraries out"


@pytest.mark.real
def test_its_libraries_get_a_token_from_the_metadata_server(image: Image) -> None:
    """In the cluster the relay has no key: what Google's client imports for that must be there."""
    with metadata() as server:
        environment = image.environment(**asking(server))
        command = image.python("-c", GET_TOKEN)
        got = subprocess.run(command, env=environment, cwd=image.app, capture_output=True, text=True, check=False)
    assert (got.stdout, got.returncode) == (f"{TOKEN}\n", 0), got.stderr


@pytest.mark.real
def test_what_is_left_out_is_required_by_something_that_is_there(image: Image) -> None:
    """Else a line of overrides.txt has lost its reason."""
    required = {
        canonicalize_name(Requirement(each).name) for library in image.libraries for each in library.requires or ()
    }
    lines = (FOLDER / "overrides.txt").read_text().splitlines()
    left_out = {canonicalize_name(Requirement(line.partition("#")[0]).name) for line in lines if line.partition("#")[0]}
    assert left_out <= required
    assert not left_out & {canonicalize_name(each.name) for each in image.libraries}


def test_the_versions_are_those_that_the_relay_is_tested_with() -> None:
    assert pins(LOCK).items() <= pins(ROOT / "tests" / "requirements.txt").items()


def test_the_sources_that_are_copied_are_those_that_the_relay_imports() -> None:
    graph = grimp.build_graph("relay", "tpu_slices")
    mains = ("relay.__main__", "relay.webhook.__main__")
    imported = {"relay.probe", *mains}.union(*map(graph.find_upstream_modules, mains))
    files = [file for file in admitted() if file.suffix == ".py"]
    copied = {".".join(file.with_suffix("").parts).removeprefix("shared."): file for file in files}
    assert {name for name in imported if name not in copied and f"{name}.__init__" not in copied} == set()
    folders = {copied[name].parent for name in imported & copied.keys()}
    needed = folders | {above for folder in folders for above in folder.parents}
    assert {file.parent for file in files} <= needed, "a folder of which nothing is imported"
    adapters = {name for name in copied if ".adapters." in name and not name.endswith(".__init__")}
    assert adapters <= imported, "of adapters, the relay has its own only"


def test_nothing_but_sources_the_files_that_they_read_and_the_lock_is_copied() -> None:
    rows = {file.relative_to(ROOT) for file in ROOT.glob("shared/tpu_slices/domain/catalogue/*.tsv")}
    assert {file for file in admitted() if file.suffix != ".py"} == {LOCK.relative_to(ROOT), *rows}


def test_the_base_is_a_release_of_the_python_that_checks_the_sources() -> None:
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BASE}", "${BASE}"]
    (base,) = re.findall(r"^ARG BASE=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert base == on_hub(STEPS["check"]["name"]).replace("-bookworm", "-slim-bookworm")


def test_it_does_not_run_as_root() -> None:
    (user,) = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)
    assert int(user) > 0
    assert DOCKERFILE.index("USER ") > DOCKERFILE.rindex("RUN ")
