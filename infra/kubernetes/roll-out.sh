#!/usr/bin/env bash
# Rolls the relay out to one cluster: roll-out.sh CLUSTER PROJECT LOCATION NAME, with the cluster's id here, and GKE's names
# of it. It applies the overlay build/relay/CLUSTER, as `python -m infra.kubernetes` wrote it.
#
# The build neither reaches a self-managed cluster, whose NAME is -, nor has credentials for it: its operator has. What is to
# be applied is kept beside Terraform's state, and the commands that do it are printed.
#
# Pods with chips are pinned to slices by an admission policy (infra/kubernetes/admission.yaml); where the API server has none,
# by a webhook (infra/kubernetes/webhook). _ADMISSION=no turns off both.
set -euo pipefail
cluster="$1" project="$2" location="$3" name="$4"
namespace=tpu-slice-provisioner

if [[ "$name" == - ]]; then
  kept="gs://$_STATE_BUCKET/tpu-slice-provisioner/relays/$cluster/$BUILD_ID"
  kubectl kustomize "build/relay/$cluster" > "build/relay/$cluster/relay.yaml"
  kubectl kustomize "build/relay/$cluster/webhook" > "build/relay/$cluster/webhook.yaml"
  gcloud storage cp "build/relay/$cluster/relay.yaml" "build/relay/$cluster/webhook.yaml" \
    "build/relay/$cluster/admission.yaml" infra/kubernetes/webhook-configuration.yaml "$kept/"
  cat << EOF
$cluster is self-managed. Where kubectl reaches it, run:
  gcloud storage cat $kept/relay.yaml | kubectl apply --server-side --filename -
  kubectl rollout status deployment/relay --namespace $namespace --timeout 5m
EOF
  if [[ "${_ADMISSION:-}" == no ]]; then
    cat << EOF
  gcloud storage cat $kept/admission.yaml | kubectl delete --ignore-not-found --filename -
  gcloud storage cat $kept/webhook-configuration.yaml | kubectl delete --ignore-not-found --filename -
  gcloud storage cat $kept/webhook.yaml | kubectl delete --ignore-not-found --filename -
EOF
  else
    cat << EOF
and from Kubernetes 1.36 on
  gcloud storage cat $kept/admission.yaml | kubectl apply --server-side --filename - && sleep 30
  gcloud storage cat $kept/webhook-configuration.yaml | kubectl delete --ignore-not-found --filename -
  gcloud storage cat $kept/webhook.yaml | kubectl delete --ignore-not-found --filename -
or before
  gcloud storage cat $kept/webhook.yaml | kubectl apply --server-side --filename - &&
    kubectl rollout status deployment/webhook --namespace $namespace --timeout 5m &&
    gcloud storage cat $kept/webhook-configuration.yaml | kubectl apply --server-side --filename -
and then
EOF
  fi
  cat << EOF
  python -m infra.preflight inside infra/clusters/$PROJECT_ID/$cluster.yaml
  slices --project $PROJECT_ID doctor --cluster $cluster
EOF
  exit
fi

export KUBECONFIG="build/relay/$cluster/kubeconfig" # each cluster its own: no command can reach another

bash infra/kubernetes/credentials.sh "$project" "$location" "$name"
kubectl apply --server-side --kustomize "build/relay/$cluster"
kubectl rollout status deployment/relay --namespace "$namespace" --timeout 5m
# Releases up to 0.1 ran the relay as this one, in every cluster. No role is bound to it any more.
kubectl delete serviceaccount relay --namespace "$namespace" --ignore-not-found

policy="build/relay/$cluster/admission.yaml" # as infra/kubernetes/admission.yaml, with what the cluster's settings serve
webhook="build/relay/$cluster/webhook" configuration=infra/kubernetes/webhook-configuration.yaml
remove() { kubectl delete --ignore-not-found "$@"; }

kinds="$(kubectl get --raw /apis/admissionregistration.k8s.io/v1)"
has_policies() { [[ "$kinds" == *'"mutatingadmissionpolicies"'* ]]; }

if [[ "${_ADMISSION:-}" != no ]] && ! has_policies; then
  # The API server calls it once it is ready: until then it would create no pod that asks for chips.
  kubectl apply --server-side --kustomize "$webhook"
  kubectl rollout status deployment/webhook --namespace "$namespace" --timeout 5m
  kubectl apply --server-side --filename "$configuration"
  for _ in {1..30}; do
    said="$(kubectl create --dry-run=server --filename infra/kubernetes/pod-with-chips.json 2>&1 || true)"
    [[ "$said" == *pods.tpu-slice-provisioner.google.com* ]] || exit 0 # it answers, whatever others say of the pod
    sleep 2 # until it has told the API server by what it is known
  done
  echo "$cluster: the API server gets no answer of the webhook, so pods are not pinned from now on: $said" >&2
  remove --filename "$configuration"
  exit 1
fi
if [[ "${_ADMISSION:-}" != no ]]; then
  kubectl apply --server-side --filename "$policy"
  if [[ -n "$(kubectl get --ignore-not-found --filename "$configuration" --output name)" ]]; then
    echo "$cluster: the policy pins pods from now on. The webhook, which did before, ends in 30 s."
    sleep 30 # until each replica of the API server evaluates the policy
  fi
elif has_policies; then
  remove --filename "$policy"
fi
remove --filename "$configuration" # before the webhook that it calls
remove --kustomize "$webhook"
