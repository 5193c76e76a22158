"""`slices simulate`: what becomes of workloads while things go wrong, played by `tpu_slices_simulator`.

Only `command` is imported with the other commands; it imports the simulator when it runs.
"""
