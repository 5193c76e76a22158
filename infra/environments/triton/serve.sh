#!/usr/bin/env bash
# Brings Triton into the cluster, each with what to look at if it fails: serve.sh readable | mesh | models | serve | address
# `python -m infra.environments.triton.builds serving` has written what is served, and build/kubeconfig reaches the cluster.
set -euo pipefail
export KUBECONFIG=build/kubeconfig
TRITON=deployment/triton-server-stable
[[ ! -f build/serving ]] || read -r namespace bucket member < build/serving

fail() { # SENTENCE COMMAND...
  printf 'serve: %s\n' "$1" >&2
  shift
  (($# == 0)) || printf '  %s\n' "$@" >&2
  exit 1
}

# Before anything is made.
readable() {
  [[ -n "$_MODEL_REPOSITORY" ]] || return 0
  [[ "$_MODEL_REPOSITORY" == gs://*/* ]] || fail "_MODEL_REPOSITORY is $_MODEL_REPOSITORY, not gs://BUCKET/FOLDER."
  gcloud storage ls "${_MODEL_REPOSITORY%/}/" > /dev/null ||
    fail "This build's account cannot read $_MODEL_REPOSITORY, or there is nothing. To let it:" \
      "gcloud storage buckets add-iam-policy-binding gs://BUCKET --role roles/storage.objectViewer --member serviceAccount:triton-builder@$PROJECT_ID.iam.gserviceaccount.com"
}

# Fails with what is known, until control plane and data plane serve.
active() {
  local at="membershipStates.\"$member\".servicemesh" states
  states="$(gcloud container fleet mesh describe --project "$PROJECT_ID" \
    --format "value[separator=' '](${at}.controlPlaneManagement.state, ${at}.dataPlaneManagement.state)")"
  [[ "$states" == "ACTIVE ACTIVE" ]] || {
    echo "The mesh of $member: ${states:-nothing is known yet}"
    return 1
  }
}

mesh() {
  bash infra/environments/until.sh 2400 bash infra/environments/triton/serve.sh active ||
    fail "Google has not provided the mesh: above are the states of control plane and data plane. Why:" \
      "gcloud container fleet mesh describe --project $PROJECT_ID"
}

# The sample last: the health check knows its answer.
models() {
  [[ -z "$_MODEL_REPOSITORY" ]] || gcloud storage cp --recursive "${_MODEL_REPOSITORY%/}/*" "$bucket/model_repository/"
  gcloud storage cp --recursive build/model_repository "$bucket/"
}

# What serves already is changed by whoever serves, version by version; a build would take that back.
serve() {
  local serves
  serves="$(kubectl get "$TRITON" --namespace "$namespace" --ignore-not-found --output 'jsonpath={.status.availableReplicas}')"
  if [[ -z "$serves" ]]; then
    kubectl apply --server-side --kustomize build/triton
  else
    echo "Triton serves here already, and stays as it is: infra/environments/triton/serving/README.md"
    [[ -z "$_MODEL_REPOSITORY" ]] || kubectl rollout restart "$TRITON" --namespace "$namespace" # it reads models when it starts
  fi
  local each
  for each in deployment/istio-ingressgateway "$TRITON"; do
    kubectl rollout status "$each" --namespace "$namespace" --timeout 45m || {
      kubectl describe pods --namespace "$namespace" >&2 || true
      kubectl logs "$TRITON" --container triton --namespace "$namespace" --tail 50 >&2 || true
      fail "$each is not ready: above are the pods, and what Triton says. A pod that waits for a GPU has to have quota for it."
    }
  done
}

ip() {
  local found
  found="$(kubectl get service istio-ingressgateway --namespace "$namespace" \
    --output 'jsonpath={.status.loadBalancer.ingress[0].ip}')"
  [[ -n "$found" ]] && echo "$found"
}

address() {
  bash infra/environments/until.sh 600 bash infra/environments/triton/serve.sh ip > build/address ||
    fail "The gateway has no address:" "kubectl describe service istio-ingressgateway --namespace $namespace"
}

"$@"
