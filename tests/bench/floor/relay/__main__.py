"""A relay that decides nothing: it publishes the name of each leader pod that becomes unschedulable."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

from infra.local.demo.watch import LEADERS, unschedulable
from tpu_slices.adapters.pubsub import connect_publisher
from tpu_standins.clients.api import Api
from tpu_standins.clients.kinds import KINDS

TOPIC = f"projects/{os.environ['GOOGLE_CLOUD_PROJECT']}/topics/facts-{os.environ['CLUSTER']}"


def main() -> None:
    publisher, told = connect_publisher(), set[tuple[str, str, int]]()
    path, query = KINDS["pods"].path(None), {"watch": "true", "labelSelector": LEADERS}
    with closing(Api.of(Path(os.environ["KUBECONFIG"])).stream(path, query, 600.0)) as stream:
        print("ready", flush=True)
        begun = b""
        while chunk := stream.read1(65_536):
            *lines, begun = (begun + chunk).split(b"\n")
            for change in map(json.loads, filter(None, lines)):
                leader = unschedulable(change["object"])
                if leader is not None and leader not in told:
                    told.add(leader)
                    publisher.publish(TOPIC, leader[0].encode()).result()


if __name__ == "__main__":
    main()
