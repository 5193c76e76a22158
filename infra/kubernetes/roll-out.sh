#!/usr/bin/env bash
# Rolls the relay out to one cluster: roll-out.sh CLUSTER PROJECT LOCATION NAME, with the cluster's id here, and GKE's names
# of it. It applies the overlay build/relay/CLUSTER, as `python -m infra.kubernetes` wrote it.
#
# The build neither reaches a self-managed cluster, whose NAME is -, nor has credentials for it: its operator has. What is to
# be applied is kept beside Terraform's state, and the commands that do it are printed.
#
# _ADMISSION=no turns the pinning of pods with chips off (infra/kubernetes/admission.yaml); else it is on, where the API server has it.
set -euo pipefail
cluster="$1" project="$2" location="$3" name="$4"
namespace=tpu-slice-provisioner

if [[ "$name" == - ]]; then
  kept="gs://$_STATE_BUCKET/tpu-slice-provisioner/relays/$cluster/$BUILD_ID"
  kubectl kustomize "build/relay/$cluster" > "build/relay/$cluster/relay.yaml"
  gcloud storage cp "build/relay/$cluster/relay.yaml" infra/kubernetes/admission.yaml "$kept/"
  pinned="apply --server-side --filename -      # if it is Kubernetes 1.36 or newer"
  [[ "${_ADMISSION:-}" != no ]] || pinned="delete --ignore-not-found --filename -"
  cat << EOF
$cluster is self-managed. Where kubectl reaches it, run:
  gcloud storage cat $kept/relay.yaml | kubectl apply --server-side --filename -
  gcloud storage cat $kept/admission.yaml | kubectl $pinned
  kubectl rollout status deployment/relay --namespace $namespace --timeout 5m
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

kinds="$(kubectl get --raw /apis/admissionregistration.k8s.io/v1)"
if [[ "$kinds" != *'"mutatingadmissionpolicies"'* ]]; then
  echo "$cluster: pods are not pinned to slices: its API server has no MutatingAdmissionPolicy (Kubernetes 1.36)."
elif [[ "${_ADMISSION:-}" == no ]]; then
  kubectl delete --ignore-not-found --filename infra/kubernetes/admission.yaml
else
  kubectl apply --server-side --filename infra/kubernetes/admission.yaml
fi
