"""`slices timeline`: what slices did over time, as a page that needs nothing but itself.

Words, figures and markup, all pure but for `command`; the arithmetic is `tpu_slices.domain.reporting.timeline`. Only
`figure` and `page` import plotly, and only the command imports them, when it runs: the other commands stay quick.
"""
