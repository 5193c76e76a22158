"""What is the case in a minute of a story: which faults are on, and what they strike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

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
