"""The content of cloudbuild.yaml; its scripts are run in test_build_scripts.py."""

import re
import tomllib

from tests.infra.sources import BUILD, ROOT, STEPS, blocks, resource

HEADER = (ROOT / "cloudbuild.yaml").read_text().partition("\nsteps:")[0]


def options(step: str) -> dict[str, str]:
    """Return the options of a Terraform step: `-out=plan` is `{"-out": "plan"}`."""
    return dict(re.findall(r"^(-[a-z-]+)=(.*)$", "\n".join(STEPS[step]["args"]), flags=re.MULTILINE))


def test_the_steps_come_in_this_order() -> None:
    cloud, relays = (
        ["stage", "init", "plan", "apply", "configure"],
        ["image", "bill-of-materials", "overlays", "roll-out"],
    )
    order = ["check", *cloud, *relays]
    assert [step["id"] for step in BUILD["steps"]] == order
    assert not [step for step in BUILD["steps"] if "waitFor" in step or "allowFailure" in step]


def test_every_steps_image_has_an_exact_version() -> None:
    for step in BUILD["steps"]:
        assert re.search(r":\d+\.\d+\.\d+(-[a-z]+)?$", step["name"]), step["name"]


def test_terraform_has_one_version_everywhere() -> None:
    [terraform] = blocks("terraform")
    images = {STEPS[step]["name"] for step in ("init", "plan", "apply")}

    assert images == {f"hashicorp/terraform:{terraform['required_version'].removeprefix('~> ')}"}


def test_the_functions_run_on_the_python_that_checked_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    [config] = resource("google_cloudfunctions2_function", "function")["build_config"]
    [version] = re.findall(r"^python:(\d+\.\d+)\.", STEPS["check"]["name"])

    assert config["runtime"] == f"python{version.replace('.', '')}"
    assert project["tool"]["mypy"]["python_version"] == version


def test_the_plan_that_was_made_is_applied() -> None:
    assert STEPS["apply"]["args"][-1] == options("plan")["-out"]
    assert {STEPS[step]["args"][0] for step in ("init", "plan", "apply")} == {"-chdir=infra/terraform"}
    assert "-auto-approve" not in STEPS["apply"]["args"]


def test_every_variable_without_a_default_is_set() -> None:
    given = set(re.findall(r"^-var=(\w+)=", "\n".join(STEPS["plan"]["args"]), flags=re.MULTILINE))

    assert given == {name for block in blocks("variable") for name, body in block.items() if "default" not in body}


def test_the_header_tells_of_every_substitution() -> None:
    given = [(*step.get("args", ()), *step.get("env", ()), step.get("script", "")) for step in BUILD["steps"]]
    used = set(re.findall(r"\$\{(_[A-Z_]+)\}", "\n".join(line for lines in given for line in lines)))

    assert used == set(re.findall(r"(_[A-Z_]+)=", HEADER))
    assert BUILD["substitutions"] == {"_IMAGE": "", "_ADMISSION": "yes"}, "another default is somebody's own value"


def test_what_has_a_default_reaches_its_step_by_a_variable_of_its_own() -> None:
    """Cloud Build refuses a substitution that nothing but a script names."""
    named = [line for step in BUILD["steps"] for line in step.get("env", ())]

    assert {f"{name.strip('_')}=${{{name}}}" for name in BUILD["substitutions"]} <= set(named)


def test_the_image_goes_to_the_repository_that_terraform_declares() -> None:
    declared = resource("google_artifact_registry_repository", "images")["repository_id"]
    [repository] = re.findall(r'^ *repository="(.*)"$', STEPS["image"]["script"], flags=re.MULTILINE)

    assert repository == f"${{_REGION}}-docker.pkg.dev/${{PROJECT_ID}}/{declared}/relay"
    assert f"--repository {declared} " in STEPS["bill-of-materials"]["script"]


def test_every_script_stops_at_its_first_error() -> None:
    scripts = [step["script"] for step in BUILD["steps"] if "script" in step]

    assert len(scripts) == 7
    assert all(script.startswith("#!/usr/bin/env bash\nset -euo pipefail\n") for script in scripts)
    assert BUILD["options"]["automapSubstitutions"] is True
