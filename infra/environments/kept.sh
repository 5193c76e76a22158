#!/usr/bin/env bash
# What builds keep beside Terraform's state, in gs://_TF_STATE_BUCKET/_TF_STATE_PREFIX/kept, for the builds after them: the
# variables of its roots, and the checksums of their providers. kept.sh fetch | kept.sh keep
set -euo pipefail
kept="gs://$_TF_STATE_BUCKET/$_TF_STATE_PREFIX/kept"

mkdir -p build/kept
case "$1" in
  fetch)
    if gcloud storage ls "$kept/*"; then # not before the first build
      gcloud storage cp "$kept/*" build/kept/
    fi
    ;;
  keep) gcloud storage cp build/kept/* "$kept/" ;;
esac
