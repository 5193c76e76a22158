"""The settings of the demo's cluster: read from the file that people edit, validated, and written to Firestore."""

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml
from google.cloud import firestore

from infra.local.addresses import Addresses
from infra.local.plan import settings_of
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.wire.cluster_settings import decode_settings, encode_settings, settings_key
from tpu_slices.wire.documents import Fields


def file_of(addresses: Addresses) -> Path:
    return settings_of(addresses.cluster_id, addresses.project)


def checked(text: str, cluster: ClusterId) -> Fields:
    """Return the settings document. Raise Permanent, naming the field, if it is invalid."""
    written: dict[str, Any] = yaml.safe_load(text)
    return encode_settings(decode_settings(cluster, written, version=""))


def seed(addresses: Addresses) -> None:
    """Write the settings; set the environment variables by which Google's clients find the emulators from here on."""
    put(checked(file_of(addresses).read_text(), ClusterId(addresses.cluster_id)), addresses)


def put(document: Fields, addresses: Addresses) -> None:
    """Write a settings document, and set the environment variables as `seed` does."""
    os.environ.update(addresses.environment())
    place = settings_key(ClusterId(addresses.cluster_id))
    with closing(firestore.Client(project=addresses.project)) as client:
        client.document(place.collection, place.id).set(document)
