#!/usr/bin/env bash
# Fails if something of the environment is left, and prints the command that deletes it: leftovers.sh PROJECT REGION CLUSTER NETWORK
set -euo pipefail
project="$1" region="$2" cluster="$3" network="$4"
left=0

left_of() { # KIND OPTION... as for gcloud KIND list
  local -a kind
  local found uri
  read -r -a kind <<< "$1"
  found="$(gcloud "${kind[@]}" list --project "$project" --uri "${@:2}")"
  for uri in $found; do
    echo "left: gcloud $1 delete $uri" >&2
    left=1
  done
}

left_of "container clusters" --location "$region" --filter "name=$cluster"
left_of "compute instances" --filter "labels.goog-k8s-cluster-name=$cluster"
left_of "compute disks" --filter "labels.goog-k8s-cluster-name=$cluster"
left_of "compute forwarding-rules" --filter "network~/$network\$"
left_of "compute network-endpoint-groups" --filter "network~/$network\$"
left_of "compute firewall-rules" --filter "network~/$network\$"
left_of "compute networks" --filter "name=$network"
if ((left)); then
  echo "Terraform made none of it, or has lost it. Delete it, or find out who needs it." >&2
  exit 1
fi
echo "Nothing is left of $cluster but what its builds kept beside Terraform's state."
