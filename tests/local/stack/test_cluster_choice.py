from pathlib import Path

from infra.local.cluster_choice import CONTROLLERS, Asked, Built, Embedded, own
from tpu_standins.controllers import catalogue
from tpu_standins.kubernetes import programs
from tpu_standins.kubernetes.versions import pinned


def a_build(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch(mode=0o755)


def test_a_stack_has_a_control_plane_only_with_the_controllers(tmp_path: Path) -> None:
    environment = {"PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path), "HOME": "/"}
    a_build(programs.built(environment, pinned()), *programs.NAMES)
    without = own(Asked(), environment)
    assert isinstance(without, Embedded)
    assert f"not built: {', '.join(map(str, CONTROLLERS))}" in str(without)
    for each in CONTROLLERS:
        a_build(catalogue.built(each, environment), catalogue.PROGRAM, catalogue.MANIFESTS)
    assert isinstance(own(Asked(), environment), Built)
