"""`make proof`: what takes a night, its result, and the page that tells it."""
