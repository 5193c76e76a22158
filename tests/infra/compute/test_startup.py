"""The startup script under bash, in a root of its own: what it makes of a host, and that it ends once it has joined."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.infra.compute.conftest import HASH, LABELS, SCRIPT, TOKEN, VERSION
from tests.infra.compute.metadata_server import Metadata
from tests.infra.compute.observed import Observed
from tests.infra.compute.outside import files_of, swapped_on, written_since
from tpu_standins.compute.booting.host import FSTAB
from tpu_standins.patience import PATIENCE_SECONDS

pytestmark = [
    pytest.mark.real,
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.usefixtures("namespaces"),
]

SECOND = "fedcba.fedcba9876543210"
STATES = ["preparing", "waiting-for-token", "joining", "joined"]


def states(metadata: Metadata) -> list[str]:
    return [value for key, value in metadata.told if key == "tpu-slice-provisioner/state"]


def errors(metadata: Metadata) -> list[str]:
    return [value for key, value in metadata.told if key == "tpu-slice-provisioner/error" and value]


def with_token(metadata: Metadata, token: str = TOKEN) -> None:
    metadata.set(kubeadm_join_token=token, kubeadm_ca_hash=HASH)


def never_printed(host: Observed, metadata: Metadata, *tokens: str) -> None:
    """Assert that no token is in what is printed, told or kept on the disk."""
    for token in tokens:
        assert token not in host.printed
        assert [told for told in metadata.told if token in told[1]] == []
        kept = [path for path, text in host.written() if token in text]
        assert [path for path in kept if path != "valid-tokens"] == []


def test_a_host_joins_with_what_its_metadata_says(host: Observed, metadata: Metadata, server: str) -> None:
    with_token(metadata)
    host.boot(server)
    [join] = host.joins
    assert yaml.safe_load(join) == {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": {
            "bootstrapToken": {"apiServerEndpoint": "10.0.0.2:6443", "token": TOKEN, "caCertHashes": [HASH]},
        },
        "nodeRegistration": {
            "name": "tpu-a-x7k2",
            "criSocket": "unix:///run/containerd/containerd.sock",
            "taints": [
                {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"},
                {"key": "team", "value": "a", "effect": "NoSchedule"},
            ],
            "kubeletExtraArgs": [
                {"name": "provider-id", "value": "gce://shop/us-central1-c/tpu-a-x7k2"},
                {"name": "node-labels", "value": LABELS},
            ],
        },
    }
    assert states(metadata) == ["preparing", "joining", "joined"]
    assert "tpu-slice-provisioner/error" not in metadata.guest
    assert metadata.refused == []
    never_printed(host, metadata, TOKEN)


def test_a_kubeadm_before_1_31_gets_the_configuration_that_it_knows(
    host: Observed, metadata: Metadata, server: str
) -> None:
    with_token(metadata)
    metadata.set(kubernetes_version="1.30")
    host.write("kubernetes", "1.30\n")
    host.boot(server)
    join = yaml.safe_load(host.joins[0])
    assert join["apiVersion"] == "kubeadm.k8s.io/v1beta3"
    args = {"provider-id": "gce://shop/us-central1-c/tpu-a-x7k2", "node-labels": LABELS}
    assert join["nodeRegistration"]["kubeletExtraArgs"] == args


def test_a_host_is_prepared(host: Observed, metadata: Metadata, server: str) -> None:
    with_token(metadata)
    host.boot(server)
    assert host.called("swapoff") == ["swapoff --all"]
    assert host.read("etc/fstab") == FSTAB.replace("\n/swapfile", "\n# /swapfile")
    assert host.read("etc/modules-load.d/tpu-slice-provisioner.conf").split() == ["overlay", "br_netfilter"]
    assert host.called("modprobe") == ["modprobe --all overlay br_netfilter"]
    assert "net.ipv4.ip_forward = 1\n" in host.read("etc/sysctl.d/90-tpu-slice-provisioner.conf")
    assert "    SystemdCgroup = true\n" in host.read("etc/containerd/config.toml")
    assert "root = '/var/lib/containerd'\n" in host.read("etc/containerd/config.toml")
    assert f"/v{VERSION}/deb/ /\n" in host.read("etc/apt/sources.list.d/kubernetes.list")
    [installed] = [call for call in host.called("apt-get") if " install " in call]
    assert installed.endswith(" containerd conntrack kubelet kubeadm")
    assert host.called("apt-mark") == ["apt-mark hold kubelet kubeadm"]
    assert host.called("systemctl") == [
        "systemctl restart containerd",
        "systemctl enable --now containerd",
        "systemctl enable kubelet",
    ]


def test_what_the_image_brings_is_kept(metadata: Metadata, server: str, tmp_path: Path) -> None:
    host = Observed.made(tmp_path / "host", SCRIPT.read_text(), image=("kubelet", "kubeadm", "containerd", "conntrack"))
    host.write("valid-tokens", f"{TOKEN}\n")
    host.write(
        "etc/containerd/config.toml",
        'disabled_plugins = ["cri"]\n[proxy]\nkept = true\n[options]\n  SystemdCgroup = false\n',
    )
    with_token(metadata)
    host.boot(server)
    assert [call for call in host.called("apt-get") if " install " in call] == []
    assert not (host.root / "etc/apt/sources.list.d").exists()
    config = host.read("etc/containerd/config.toml")
    assert config == "disabled_plugins = []\n[proxy]\nkept = true\n[options]\n  SystemdCgroup = true\n"


def test_another_minor_version_of_the_image_is_replaced(metadata: Metadata, server: str, tmp_path: Path) -> None:
    host = Observed.made(tmp_path / "host", SCRIPT.read_text(), image=("kubelet", "kubeadm", "containerd", "conntrack"))
    host.write("kubernetes", "1.35\n")
    with_token(metadata)
    with host.booted(server):
        metadata.await_told("tpu-slice-provisioner/error", "install_packages failed")
    [installed, *_] = [call for call in host.called("apt-get") if " install " in call]
    assert installed.endswith(" --allow-change-held-packages --allow-downgrades kubelet kubeadm")
    assert f"Pin: version {VERSION}.*\nPin-Priority: 1001\n" in host.read("etc/apt/preferences.d/kubernetes")
    assert host.joins == []


def test_a_token_that_comes_late_is_awaited(host: Observed, metadata: Metadata, server: str) -> None:
    with host.booted(server) as boot:
        metadata.await_told("tpu-slice-provisioner/state", "waiting-for-token")
        assert host.joins == []
        with_token(metadata)
        host.await_end(boot)
    assert states(metadata) == STATES
    assert len(host.joins) == 1


def test_another_token_is_tried_after_a_failed_join(host: Observed, metadata: Metadata, server: str) -> None:
    with_token(metadata)
    host.write("valid-tokens", f"{SECOND}\n")
    with host.booted(server) as boot:
        metadata.await_told("tpu-slice-provisioner/error", "kubeadm join failed")
        with_token(metadata, SECOND)
        host.await_end(boot)
    assert f'token: "{SECOND}"' in host.joins[-1]
    assert host.called("sleep") == []  # nor does it wait for longer than until the token changes
    assert "for token [token]" in errors(metadata)[0]
    assert "tpu-slice-provisioner/error" not in metadata.guest
    never_printed(host, metadata, TOKEN, SECOND)


def test_a_token_that_is_none_is_told_without_it(host: Observed, metadata: Metadata, server: str) -> None:
    with_token(metadata, "MARKER; rm -rf /")
    with host.booted(server):
        metadata.await_told("tpu-slice-provisioner/error", "metadata kubeadm-join-token: not a bootstrap token")
    assert host.joins == []
    never_printed(host, metadata, "MARKER")


def test_a_metadata_server_that_is_away_is_awaited(host: Observed, metadata: Metadata, server: str) -> None:
    with_token(metadata)
    metadata.away = True
    with host.booted(server) as boot:
        assert metadata.in_vain.wait(PATIENCE_SECONDS), host.printed
        metadata.away = False
        host.await_end(boot)
    assert "does not answer" in host.printed
    assert states(metadata)[-1] == "joined"


def test_kubeadm_is_tried_until_it_succeeds(host: Observed, metadata: Metadata, server: str) -> None:
    with_token(metadata)
    host.write("join-fails", "2")
    host.boot(server)
    assert [call.split()[1] for call in host.called("kubeadm")] == ["join", "reset", "join", "reset", "join"]
    assert states(metadata) == ["preparing", "joining", "joined"]
    assert "timed out waiting for the condition" in errors(metadata)[0]
    assert "tpu-slice-provisioner/error" not in metadata.guest


def test_packages_are_tried_until_they_are_there(host: Observed, metadata: Metadata, server: str) -> None:
    with_token(metadata)
    host.write("apt-fails", "3")
    host.boot(server)
    assert [call for call in host.called("sleep") if call != "sleep 1"] == ["sleep 5", "sleep 10", "sleep 20"]
    assert "install_packages failed" in errors(metadata)[0]
    assert "Could not connect to the archive" in errors(metadata)[0]
    assert len(host.joins) == 1


def test_a_setting_that_is_missing_is_named_and_awaited(host: Observed, metadata: Metadata, server: str) -> None:
    with_token(metadata)
    metadata.set(kubeadm_control_plane=None)
    with host.booted(server) as boot:
        metadata.await_told("tpu-slice-provisioner/error", "metadata kubeadm-control-plane: missing")
        metadata.set(kubeadm_control_plane="10.0.0.3:443")
        host.await_end(boot)
    assert 'apiServerEndpoint: "10.0.0.3:443"' in host.joins[0]


def test_a_host_that_has_joined_does_nothing_after_a_reboot(host: Observed, metadata: Metadata, server: str) -> None:
    with_token(metadata)
    host.boot(server)
    before, calls = dict(host.written()), host.calls
    metadata.set(kubeadm_join_token=None, kubeadm_ca_hash=None)
    metadata.told.clear()
    host.boot(server)
    after = dict(host.written())
    del before["serial"], after["serial"]
    assert host.calls == calls
    assert {path: text for path, text in after.items() if not path.startswith("run/")} == {
        path: text for path, text in before.items() if not path.startswith("run/")
    }
    assert states(metadata) == ["joined"]


def test_a_host_that_was_rebooted_while_it_joined_joins_anew(host: Observed, metadata: Metadata, server: str) -> None:
    with_token(metadata)
    host.write("etc/kubernetes/kubelet.conf", "half")
    host.boot(server)
    assert [call.split()[1] for call in host.called("kubeadm")] == ["reset", "join"]
    assert states(metadata)[-1] == "joined"


def test_guest_attributes_that_are_off_do_not_keep_a_host_from_joining(
    host: Observed, metadata: Metadata, server: str
) -> None:
    with_token(metadata)
    metadata.set(enable_guest_attributes="FALSE")
    host.boot(server)
    assert len(host.joins) == 1
    assert "could not be set" in host.printed


def test_nothing_outside_the_host_is_changed(host: Observed, metadata: Metadata, server: str, tmp_path: Path) -> None:
    host.write("join-fails", "1")
    with_token(metadata)
    moment = tmp_path / "before"
    moment.touch()
    swaps = swapped_on()
    host.boot(server)
    assert {"etc/fstab", "calls"} <= set(files_of(host.root))
    assert written_since(moment, host.root) == []
    assert swapped_on() == swaps
    assert str(host.root) not in Path("/proc/self/mounts").read_text()
