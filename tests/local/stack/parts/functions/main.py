"""Sample functions: each records in Firestore which messages it received."""

import base64

from cloudevents.http import CloudEvent
from google.cloud import firestore

database = firestore.Client()


def note(target: str, event: CloudEvent) -> None:
    message = event.data["message"]
    database.collection("seen").document(message["messageId"]).set(
        {
            "target": target,
            "source": event["source"],
            "data": base64.b64decode(message["data"]).decode(),
        }
    )


def receive(event: CloudEvent) -> None:
    note("receive", event)


def reconcile(event: CloudEvent) -> None:
    note("reconcile", event)


def sweep(event: CloudEvent) -> None:
    note("sweep", event)


def notify(event: CloudEvent) -> None:
    note("notify", event)
