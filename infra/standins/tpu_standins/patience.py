"""How long is waited for what may hang, on any machine: many times what a busy one with a single processor takes.

What exits, refuses or can never happen is noticed at once. These ends are for what hangs; nothing else depends on them.
"""

PATIENCE_SECONDS = 600.0
"""Until a program is ready or ends, an answer comes, an object is there or gone."""
ATTEMPT_SECONDS = 60.0
"""For one attempt of what is tried again until PATIENCE_SECONDS are over."""
