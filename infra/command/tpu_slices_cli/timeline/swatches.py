"""The colour and pattern of a phase, as a small image beside its name."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from tpu_slices.domain.model.reasons import Phase
from tpu_slices_cli.timeline.colours import PATTERNS, STROKES
from tpu_slices_cli.timeline.markup import tag


def swatch(phase: Phase) -> Element:
    """Return the image of a phase, hidden from screen readers, which read the name beside it."""
    if phase not in PATTERNS:
        return drawn("M10 2L22 12M22 2L10 12")
    ground = tag("rect", width="32", height="14", fill=f"var(--{phase.lower()})")
    strokes = tag("path", d=STROKES[PATTERNS[phase]], fill="none", stroke="var(--page)", stroke_width="1.5")
    return tag("svg", ground, strokes, viewBox="0 0 32 14", aria_hidden="true")


def drawn(path: str, *, stroke: str = "var(--ink)", dashes: str = "none", fill: str = "none") -> Element:
    """Return an image of 32 x 14 pixels with this path."""
    line = tag("path", d=path, fill=fill, stroke=stroke, stroke_width="2", stroke_dasharray=dashes)
    return tag("svg", line, viewBox="0 0 32 14", aria_hidden="true")
