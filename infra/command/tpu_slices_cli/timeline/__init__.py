"""`slices timeline`: what slices did over time, as a self-contained HTML page.

Texts, charts and markup; all pure except `command`. The numbers are those of
`tpu_slices.domain.reporting.timeline`.
"""
