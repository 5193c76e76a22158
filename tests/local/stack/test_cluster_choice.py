from pathlib import Path

from infra.local.cluster_choice import CONTROLLERS, Asked, Built, Embedded, own
from tpu_standins.testing.builds import a_control_plane, a_controller


def test_a_stack_has_a_control_plane_only_with_the_controllers(tmp_path: Path) -> None:
    environment = {"PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path), "HOME": "/"}
    a_control_plane(environment)
    without = own(Asked(), environment)
    assert isinstance(without, Embedded)
    assert f"not built: {', '.join(map(str, CONTROLLERS))}" in str(without)
    for each in CONTROLLERS:
        a_controller(each, environment)
    assert isinstance(own(Asked(), environment), Built)
