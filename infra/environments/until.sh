#!/usr/bin/env bash
# Tries a command until it succeeds: until.sh SECONDS COMMAND ARGUMENT... After that time it fails. It prints what the command
# said last, and nothing of what it said before.
set -euo pipefail
left="$1"
shift

while ! said="$("$@" 2>&1)"; do
  if ((left <= 0)); then
    printf '%s\n' "$said" >&2
    exit 1
  fi
  sleep 10
  left=$((left - 10))
done
printf '%s\n' "$said"
