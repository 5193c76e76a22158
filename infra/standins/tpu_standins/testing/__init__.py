"""For tests against the stand-ins: control planes in a process, fixtures of programs and emulators, waiting."""
