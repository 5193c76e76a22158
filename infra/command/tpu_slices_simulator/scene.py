"""What is the case in a minute of a story: which faults are on, and what they strike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.wire.cluster_settings import accepted_key, encode_settings, settings_key
from tpu_slices_simulator.chance import Chance
from tpu_slices_simulator.fuse import Fuse
from tpu_slices_simulator.story import Kind, Story
from tpu_slices_simulator.system import System


class Scene(System):
    """A system in a story; `struck` counts, by kind of fault, how often one had an effect."""

    def __init__(self, story: Story, now: datetime, fuse: Fuse | None = None) -> None:
        super().__init__(story.settings, now, fuse)
        self.story = story
        self.chance = Chance(story.seed)
        self.minute = 0
        self.struck: Counter[Kind] = Counter()
        self.on: Mapping[Kind, float] = {}

    def strikes(self, kind: Kind, *key: object) -> bool:
        """Return whether a fault that is on strikes what the key names, and count it."""
        share = self.on.get(kind, 0.0)
        if share and self.chance.happens(share, kind, *key):
            self.struck[kind] += 1
            return True
        return False

    def puts_settings(self, settings: ClusterSettings) -> None:
        """Let these settings be in force."""
        self.settings = settings
        self.store.put_document(accepted_key(settings.cluster), encode_settings(settings))
        self.edits_settings(valid=Kind.SETTINGS_INVALID not in self.on)

    def edits_settings(self, *, valid: bool) -> None:
        """Let somebody edit the settings so that they can be accepted, or cannot: then the last ones stay in force."""
        self.struck[Kind.SETTINGS_INVALID] += not valid
        document = encode_settings(self.settings)
        self.store.put_document(settings_key(self.settings.cluster), document if valid else {**document, "zone": 5})
