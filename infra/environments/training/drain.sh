#!/usr/bin/env bash
# Ends all that runs in the cluster while its controllers still carry it out, in this order:
#   drain.sh suspend                           nothing is admitted any more, and what trains is suspended
#   drain.sh slices PROJECT REGION CLUSTER     waits until the provisioner has deleted its slices
# Then infra/environments/drain.sh deletes what teams run.
set -euo pipefail
export KUBECONFIG=build/kubeconfig

QUEUES=clusterqueues.kueue.x-k8s.io
JOBSETS=jobsets.jobset.x-k8s.io
GROUPS_OF_PODS=leaderworkersets.leaderworkerset.x-k8s.io
NOBODYS='{{range .items}}{{if not .metadata.ownerReferences}}{{.metadata.namespace}} {{.metadata.name}}{{"\n"}}{{end}}{{end}}'

serves() { # KIND: whether the cluster knows it; it need not have been configured
  local found
  found="$(kubectl get customresourcedefinitions "$1" --ignore-not-found --output name)" || exit
  [[ -n "$found" ]]
}

each() { # KIND SELECTOR COMMAND...: run a command of kubectl on each that nobody else controls
  local objects namespace name
  objects="$(kubectl get "$1" --all-namespaces --selector "$2" --output "go-template=$NOBODYS")"
  while read -r namespace name; do
    [[ -z "$name" ]] || kubectl "$3" "$1" "$name" --namespace "$namespace" "${@:4}"
  done <<< "$objects"
}

# A slice whose JobSet is suspended is released. If many JobSets were deleted at once, the provisioner would keep their slices,
# as after a mistake: docs/adr/0044.
suspend() {
  local queue
  if serves "$QUEUES"; then
    for queue in $(kubectl get "$QUEUES" --output name); do
      kubectl patch "$queue" --type merge --patch '{"spec":{"stopPolicy":"HoldAndDrain"}}'
    done
  fi
  # Kueue suspends what is in a queue.
  ! serves "$JOBSETS" || each "$JOBSETS" '!kueue.x-k8s.io/queue-name' patch --type merge --patch '{"spec":{"suspend":true}}'
  each jobs.batch '!kueue.x-k8s.io/queue-name' patch --type merge --patch '{"spec":{"suspend":true}}'
  ! serves "$GROUPS_OF_PODS" || each "$GROUPS_OF_PODS" '' scale --replicas 0
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
    echo "Nothing here needs them any more. Why the provisioner keeps them: slices --project PROVISIONER list" >&2
    echo "End them, and that any are bought: slices --project PROVISIONER retire $3 --message TEXT. If there is no" >&2
    echo "provisioner any more: gcloud container node-pools delete NAME --project $1 --location $2 --cluster $3" >&2
    echo "Then submit again." >&2
    exit 1
  }
}

"$@"
