#!/usr/bin/env bash
# Makes kubectl reach one cluster, by GKE's names of it: credentials.sh PROJECT LOCATION NAME. It uses the DNS endpoint, by
# which a private control plane is reached too; where that is off, and the build runs in a private pool (_WORKER_POOL), the
# private address. If neither does, preflight has said so.
set -euo pipefail
project="$1" location="$2" name="$3"

endpoint=--dns-endpoint
dns="$(gcloud container clusters describe "$name" --location "$location" --project "$project" \
  --format 'value(controlPlaneEndpointsConfig.dnsEndpointConfig.allowExternalTraffic)')"
if [[ "$dns" != True && -n "${_WORKER_POOL:-}" ]]; then
  endpoint=--internal-ip
fi
gcloud container clusters get-credentials "$name" --location "$location" --project "$project" "$endpoint"
