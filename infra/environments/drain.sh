#!/usr/bin/env bash
# Deletes what people run in a cluster, its volumes and load balancers: they outlive a cluster. drain.sh workloads
set -euo pipefail
export KUBECONFIG=build/kubeconfig

CUSTOM=(workloads.kueue.x-k8s.io leaderworkersets.leaderworkerset.x-k8s.io jobsets.jobset.x-k8s.io)
KINDS=cronjobs.batch,jobs.batch,deployments.apps,statefulsets.apps,daemonsets.apps,replicasets.apps,pods
KINDS+=,ingresses.networking.k8s.io,services,persistentvolumeclaims
# Of GKE and the mesh, and of the controllers that are needed until the end.
SYSTEM='^(kube-.*|gke-.*|gmp-.*|istio-system|jobset-system|kueue-system|tpu-slice-provisioner)$'

serves() { # KIND: whether the cluster knows it; it need not have been configured
  local found
  found="$(kubectl get customresourcedefinitions "$1" --ignore-not-found --output name)" || exit
  [[ -n "$found" ]]
}

volumes() { # those that go with their claims; fails while there is one
  local left
  left="$(kubectl get persistentvolumes \
    --output 'jsonpath={.items[?(@.spec.persistentVolumeReclaimPolicy=="Delete")].metadata.name}')"
  [[ -z "$left" ]] || { echo "Volumes are still being deleted: $left" && return 1; }
}

workloads() {
  local kinds="$KINDS" kind namespace
  for kind in "${CUSTOM[@]}"; do
    ! serves "$kind" || kinds="$kind,$kinds"
  done
  for namespace in $(kubectl get namespaces --output 'jsonpath={.items[*].metadata.name}'); do
    [[ "$namespace" =~ $SYSTEM ]] || kubectl delete "$kinds" --all --namespace "$namespace" --timeout 15m
  done
  bash infra/environments/until.sh 600 bash infra/environments/drain.sh volumes
}

"$@"
