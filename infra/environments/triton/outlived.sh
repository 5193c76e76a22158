#!/usr/bin/env bash
# Deletes what outlives a cluster in its network, and keeps that from going: what the mesh has made for it, and load balancers
# of a cluster that had failed. outlived.sh PROJECT REGION NETWORK, once the cluster is gone. Nothing else is in the network.
set -euo pipefail
project="$1" region="$2" network="$3"

in_network() { # KIND FORMAT
  gcloud compute "$1" list --project "$project" --filter "network~/$network\$" --format "value($2)"
}

remove() { # KIND ARGUMENT...
  echo "left by the cluster: gcloud compute $*"
  gcloud compute "$1" delete "${@:2}" --project "$project" --quiet
}

# A load balancer on the internet does not tell its network: the rule that lets its clients in has its name.
for rule in $(in_network firewall-rules name); do
  if [[ "$rule" == k8s-fw-* ]]; then
    for kind in forwarding-rules target-pools; do
      found="$(gcloud compute "$kind" list --project "$project" --filter "name=${rule#k8s-fw-} region:$region" \
        --format 'value(name)')"
      [[ -z "$found" ]] || remove "$kind" "$found" --region "$region"
    done
  fi
  remove firewall-rules "$rule"
done
groups="$(in_network network-endpoint-groups 'name, zone.basename()')"
while read -r name zone; do
  [[ -z "$name" ]] || remove network-endpoint-groups "$name" --zone "$zone"
done <<< "$groups"
