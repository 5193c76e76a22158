#!/usr/bin/env bash
# Ends all that runs in the cluster while its controllers still carry it out: drain.sh workloads | slices PROJECT REGION CLUSTER
# Afterwards no slice is wanted, and no volume or load balancer is left, which would outlive the cluster.
set -euo pipefail
export KUBECONFIG=build/kubeconfig

QUEUES=clusterqueues.kueue.x-k8s.io
CUSTOM=(jobsets.jobset.x-k8s.io leaderworkersets.leaderworkerset.x-k8s.io workloads.kueue.x-k8s.io)
KINDS=cronjobs.batch,jobs.batch,deployments.apps,statefulsets.apps,daemonsets.apps,replicasets.apps,pods
KINDS+=,ingresses.networking.k8s.io,services,persistentvolumeclaims
# Of GKE, and of the controllers that are needed until the end.
SYSTEM='^(kube-.*|gke-.*|gmp-.*|jobset-system|kueue-system|tpu-slice-provisioner)$'

volumes() { # those that go with their claims; fails while there is one
  local left
  left="$(kubectl get persistentvolumes \
    --output 'jsonpath={.items[?(@.spec.persistentVolumeReclaimPolicy=="Delete")].metadata.name}')"
  [[ -z "$left" ]] || { echo "Volumes are still being deleted: $left" && return 1; }
}

workloads() {
  local served kinds="$KINDS" kind queue namespace
  served="$(kubectl get customresourcedefinitions --output name)"
  # From here on nothing is admitted, and what was is suspended: the provisioner releases its slices.
  if grep -q "/$QUEUES\$" <<< "$served"; then
    for queue in $(kubectl get "$QUEUES" --output name); do
      kubectl patch "$queue" --type merge --patch '{"spec":{"stopPolicy":"HoldAndDrain"}}'
    done
  fi
  for kind in "${CUSTOM[@]}"; do
    ! grep -q "/$kind\$" <<< "$served" || kinds="$kind,$kinds"
  done
  for namespace in $(kubectl get namespaces --output 'jsonpath={.items[*].metadata.name}'); do
    [[ "$namespace" =~ $SYSTEM ]] || kubectl delete "$kinds" --all --namespace "$namespace" --timeout 15m
  done
  bash infra/environments/until.sh 600 bash infra/environments/training/drain.sh volumes
}

# Fails while a node pool of the provisioner stands, and names it.
stands() { # PROJECT REGION CLUSTER
  local pools
  pools="$(gcloud container node-pools list --project "$1" --location "$2" --cluster "$3" \
    --filter 'config.labels."google.com/tpu-slice-id":*' --format 'value(name)')"
  [[ -z "$pools" ]] || { echo "Slices that the provisioner bought stand in $3:" "$pools" && return 1; }
}

# The provisioner deletes its slices when nobody needs them any more. They are never deleted here: its records would not know.
slices() { # PROJECT REGION CLUSTER
  bash infra/environments/until.sh 2700 bash infra/environments/training/drain.sh stands "$@" || {
    echo "Nothing here needs them any more. What the provisioner does with them: slices --project PROJECT list $3" >&2
    echo "End them, and that any are bought: slices --project PROJECT retire $3 --message TEXT. If there is no provisioner" >&2
    echo "any more: gcloud container node-pools delete NAME --project $1 --location $2 --cluster $3. Then submit again." >&2
    exit 1
  }
}

"$@"
