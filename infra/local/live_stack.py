"""What a stack does differently with GKE itself: its settings, its credentials, and that it releases all in the end."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.local import settings
from infra.local.addresses import Addresses
from infra.local.live_target import Live, NotLive, impersonating, source_of
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.cluster_settings import decode_settings, encode_settings
from tpu_slices.wire.documents import Fields
from tpu_standins.kubeconfig import write_private

RELEASING = "\nReleasing all slices, which takes GKE minutes. Another Ctrl-C ends this without waiting."
LEFT = "Node pools may be left, which cost money. This lists them:\n  {command}"


def document(live: Live, cluster: ClusterId) -> Fields:
    """Return the settings document. Raises NotLive, naming the field, if it is invalid."""
    try:
        return encode_settings(decode_settings(cluster, {**live.settings}, version=""))
    except Permanent as invalid:
        raise NotLive(f"The settings of {live.path} are invalid: {invalid}") from invalid


def seed(live: Live, addresses: Addresses) -> None:
    """Write the settings of the cluster, as `infra.local.settings.seed` does those of the demo."""
    settings.put(document(live, ClusterId(addresses.cluster_id)), addresses)


def write_credentials(live: Live, file: Path) -> None:
    """Write credentials that act as the account. Raises NotLive if the user has none."""
    gcloud = Path(os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud")
    named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS") or gcloud / "application_default_credentials.json"
    write_private(file, json.dumps(impersonating(live.account, source_of(Path(named)))))


@contextmanager
def released(live: Live, addresses: Addresses) -> Iterator[None]:
    """Release every slice when the block is left, and wait until GKE has none of their node pools."""
    try:
        yield
    finally:
        print(RELEASING, file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "tpu_slices_cli", "retire", addresses.cluster_id]
        why = ["--yes", "--message", "the local stack ends", "--interval", "5"]
        try:
            environment = {**os.environ, **addresses.environment()}
            ended = subprocess.run([*command, *why], env=environment, start_new_session=True, check=False).returncode
        except KeyboardInterrupt:
            ended = 1
        if ended:
            print(LEFT.format(command=live.list_command), file=sys.stderr, flush=True)
