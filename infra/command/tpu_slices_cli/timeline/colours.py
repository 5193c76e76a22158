"""The colours and patterns of a timeline, shared by the chart and the page.

Contrast to the page as in WCAG 2.2: text 4.5 to 1 (1.4.3), shapes 3 to 1 (1.4.11). The colours are Okabe and Ito's,
darker in the light theme. Phases differ by pattern too, so that none is recognizable by colour alone (1.4.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from tpu_slices.domain.model.reasons import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    page: str
    panel: str
    ink: str
    quiet: str
    """For secondary text."""
    line: str
    """For rules and grids, which are decoration."""
    accent: str
    """For links and the focus outline."""
    phases: dict[Phase, str]


LIGHT = Theme(
    page="#ffffff",
    panel="#f4f6f8",
    ink="#1b2127",
    quiet="#525c66",
    line="#d5dae0",
    accent="#0b57a4",
    phases={
        Phase.QUEUED: "#7d8791",
        Phase.WAITING: "#c07a00",
        Phase.PROVISIONING: "#2d87c4",
        Phase.READY: "#00785a",
        Phase.RELEASING: "#b2558f",
        Phase.REFUSED: "#c24400",
        Phase.BLOCKED: "#54348c",
    },
)
DARK = Theme(
    page="#12161b",
    panel="#1c2229",
    ink="#e8ecf0",
    quiet="#a9b4bf",
    line="#36404a",
    accent="#86bdf5",
    phases={
        Phase.QUEUED: "#8f99a3",
        Phase.WAITING: "#e69f00",
        Phase.PROVISIONING: "#56b4e9",
        Phase.READY: "#1fae84",
        Phase.RELEASING: "#d58bb8",
        Phase.REFUSED: "#ee6a26",
        Phase.BLOCKED: "#a78be0",
    },
)

PATTERNS = {
    Phase.QUEUED: ".",
    Phase.WAITING: "/",
    Phase.PROVISIONING: "\\",
    Phase.READY: "",
    Phase.RELEASING: "x",
    Phase.REFUSED: "-",
    Phase.BLOCKED: "+",
}
"""The pattern of each phase, by a name in STROKES."""

STROKES = {
    "": "",
    ".": "M4 4h2M12 4h2M20 4h2M28 4h2M8 10h2M16 10h2M24 10h2",
    "/": "M-4 14L10 0M6 14L20 0M16 14L30 0M26 14L40 0",
    "\\": "M-4 0L10 14M6 0L20 14M16 0L30 14M26 0L40 14",
    "x": "M-4 0L10 14M6 0L20 14M16 0L30 14M26 0L40 14M-4 14L10 0M6 14L20 0M16 14L30 0M26 14L40 0",
    "-": "M0 4H32M0 10H32",
    "+": "M0 7H32M5 0V14M13 0V14M21 0V14M29 0V14",
}
"""The patterns as SVG paths, for a swatch of 32 x 14 pixels."""
