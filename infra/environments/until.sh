#!/usr/bin/env bash
# Tries a command until it succeeds: until.sh SECONDS COMMAND ARGUMENT... After that time it fails. It prints what the command
# said last, and nothing of what it said before. It tries every ten seconds, or sixty times in all if that takes longer.
# UNTIL_TRIES in the environment is how often it tries at most: where time is played.
set -euo pipefail
left="$1"
pause=$((left > 600 ? left / 60 : 10))
tries="${UNTIL_TRIES:-100}"
shift

while ! said="$("$@" 2>&1)"; do
  if ((left <= 0 || --tries <= 0)); then
    printf '%s\n' "$said" >&2
    exit 1
  fi
  sleep "$pause"
  left=$((left - pause))
done
printf '%s\n' "$said"
