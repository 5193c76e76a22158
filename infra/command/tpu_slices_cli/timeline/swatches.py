"""The colour and pattern of a phase, as a small image beside its name."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from tpu_slices.domain.model.reasons import Phase
from tpu_slices_cli.timeline.colours import PATTERNS, STROKES
from tpu_slices_cli.timeline.markup import tag


def swatch(phase: Phase) -> Element:
    """Return the image of a phase, hidden from screen readers, which read the name beside it."""
    if phase not in PATTERNS:
        return tag(
            "svg", tag("path", d="M10 2L22 12M22 2L10 12", class_="gone"), viewBox="0 0 32 14", aria_hidden="true"
        )
    ground = tag("rect", width="32", height="14", class_=phase.lower())
    strokes = tag("path", d=STROKES[PATTERNS[phase]], class_="strokes")
    return tag("svg", ground, strokes, viewBox="0 0 32 14", aria_hidden="true")
