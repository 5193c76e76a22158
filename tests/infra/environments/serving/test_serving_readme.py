"""The pages on serving with Triton, and what they must have from the sources."""

from __future__ import annotations

import re
import tomllib

from infra.environments.triton.serving.__main__ import _parser
from infra.environments.triton.serving.overlay import RELEASE
from infra.environments.triton.serving.sample_model import COLOURS, model
from tests.infra.sources import ROOT

SERVING = (ROOT / "infra" / "environments" / "triton" / "serving" / "README.md").read_text()
CLIENT = (ROOT / "examples" / "triton" / "README.md").read_text()


def test_every_option_of_the_overlay_is_told_with_its_default() -> None:
    told: dict[str, str] = {}
    for options, default in re.findall(r"^\| (`--[^|]+) \|[^|]+\| (.+) \|$", SERVING, re.MULTILINE):
        told |= dict.fromkeys(re.findall(r"--[\w-]+", options), default.strip("`"))
    words = {None: "none", (): "everybody"}
    defaults = {
        action.option_strings[0]: "required"
        if action.required
        else words.get(
            tuple(action.default) if isinstance(action.default, list) else action.default, str(action.default)
        )
        for action in _parser()._actions
        if action.dest != "help"
    }
    assert told == defaults


def test_the_image_is_everywhere_of_the_release_that_is_served() -> None:
    named = re.findall(r"nvcr\.io/nvidia/tritonserver:[\d.]+-py3", SERVING + CLIENT)
    assert set(named) == {RELEASE}
    release = RELEASE.rpartition(":")[2].removesuffix("-py3").replace(".", "-")
    assert f"release-notes/rel-{release}.html" in SERVING


def test_the_client_is_installed_with_the_versions_that_are_tested() -> None:
    [command] = re.findall(r"pip install (.+)", CLIENT)
    development = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["dev"]
    named = set(command.replace("'", "").split())
    assert {re.split(r"[\[=]", each)[0] for each in named} == {"numpy", "pillow", "tritonclient"}
    assert named <= set(development)


def test_the_sample_model_is_as_large_as_is_told() -> None:
    assert f"a model of {len(model())} bytes" in SERVING
    assert f"{'nine' if len(COLOURS) == 9 else '?'} colours" in " ".join(SERVING.split())
