"""Credentials that are rotated, expire, or do not suffice."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kubernetes.config import incluster_config

from relay import cluster
from relay.connection import connect
from relay.objects import Kind
from tests.builders import an_owner
from tests.relay.attack.bed import Bed, names
from tpu_slices.ports.errors import Temporary
from tpu_standins.kubeconfig import for_token_file

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


class CredentialFiles:
    """A kubeconfig and the token file that it names, for tests to rewrite."""

    def __init__(self, bed: Bed, folder: Path) -> None:
        self.path, self.token = folder / "kubeconfig", folder / "token"
        administrators = bed.served.kubeconfig.read_text()
        self.whole = for_token_file(administrators, self.token)
        self.good: str = yaml.safe_load(administrators)["users"][0]["user"]["token"]
        self.path.write_text(self.whole)
        self.token.write_text("stale")
        self.api = connect({"KUBECONFIG": str(self.path)})


@pytest.fixture
def files(bed: Bed, tmp_path: Path) -> Iterator[CredentialFiles]:
    made = CredentialFiles(bed, tmp_path)
    bed.source = next(source for source in cluster.sources(made.api) if source.kind is Kind.HOSTS)
    with made.api:
        yield made


def test_a_rejected_token_is_read_from_its_file_again(bed: Bed, files: CredentialFiles) -> None:
    bed.create(0)
    with bed.watching() as recorder:
        recorder.until(lambda: len(recorder.failures) >= 2)
        assert recorder.failures[0] == "401 Unauthorized"
        files.token.write_text(files.good)
        recorder.until(lambda: recorder.lists == [names(0)])


def test_a_half_written_kubeconfig_does_not_end_the_relay(bed: Bed, files: CredentialFiles) -> None:
    with bed.watching() as recorder:
        files.path.write_text("{half: [writ")
        recorder.until(lambda: len(recorder.failures) >= 2)
        files.path.unlink()
        tries = len(recorder.failures)
        recorder.until(lambda: len(recorder.failures) > tries + 1)
        files.token.write_text(files.good)
        files.path.write_text(files.whole)
        recorder.until(lambda: len(recorder.lists) == 1)


def test_a_watch_is_resumed_where_it_was_with_the_new_token(bed: Bed, files: CredentialFiles) -> None:
    files.token.write_text(files.good)
    with bed.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
        bed.press("answer", verb="watch", code=401, message="Unauthorized", times=1)
        bed.press("close-watches")
        bed.create(0)
        recorder.until(lambda: sorted(recorder.present) == names(0))
    assert (len(recorder.lists), len(recorder.failures)) == (1, 0)


def test_a_single_call_uses_the_new_token(files: CredentialFiles) -> None:
    calls, name = cluster.Cluster(files.api), an_owner("llama", namespace="default")
    with pytest.raises(Temporary, match="401"):
        calls.workload(name)
    files.token.write_text(files.good)
    assert calls.workload(name) is None


def test_a_forbidden_resource_does_not_stop_the_watches_of_others(bed: Bed) -> None:
    words = 'jobsets.jobset.x-k8s.io is forbidden: User "relay" cannot list resource "jobsets"'
    bed.press("answer", resource="jobsets", code=403, message=words)
    with bed.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
    bed.recorder.kind = Kind.JOBSETS
    bed.source = next(source for source in cluster.sources(bed.api) if source.kind is Kind.JOBSETS)
    with bed.watching() as recorder:
        recorder.until(lambda: bool(recorder.failures))
        bed.served.proxy.clear()
        recorder.until(lambda: len(recorder.lists) == 2)
    assert recorder.failures[0] == f"403 {words}"


def test_a_service_accounts_token_is_read_from_its_file_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("first")
    authority.write_text("certificate")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    tokens = []
    for text in ("first", "second"):
        token.write_text(text)
        tokens.append(connect({}).configuration.get_api_key_with_prefix("BearerToken"))
    assert tokens == ["bearer first", "bearer second"]
