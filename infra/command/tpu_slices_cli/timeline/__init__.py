"""`slices timeline`: what slices did over time, as a self-contained HTML page.

Texts, chart and markup; all pure except `command`. The numbers are computed by `tpu_slices.domain.reporting.timeline`.
Only `figure` and `page` import plotly; `command` imports them when it runs, so that the other commands start quickly.
"""
