#!/usr/bin/env bash
# Checks what was provisioned, and fails with what to look at: health.sh webhooks | queues | smoke
# `python -m infra.environments.training.builds smoke` has written build/smoke, and build/kubeconfig reaches the cluster.
set -euo pipefail
export KUBECONFIG=build/kubeconfig
JOBSET=smoke-check

fail() { # SENTENCE COMMAND...
  printf 'health: %s\n' "$1" >&2
  shift
  (($# == 0)) || printf '  %s\n' "$@" >&2
  exit 1
}

# Of one request to create a queued JobSet both webhooks take part: JobSet's sets how Jobs complete, Kueue's suspends it.
# Nothing is created.
defaulted() {
  local got
  got="$(kubectl create --dry-run=server --filename build/smoke/jobset.json \
    --output 'jsonpath={.spec.suspend} {.spec.replicatedJobs[0].template.spec.completionMode}')"
  [[ "$got" == "true Indexed" ]] ||
    fail "A JobSet in a queue became suspend=${got% *} completionMode=${got#* }, not suspend=true completionMode=Indexed."
}

webhooks() {
  kubectl patch --local --type json --patch-file build/smoke/patch.json --output json \
    --filename examples/training/device-check.yaml > build/smoke/jobset.json
  bash infra/environments/until.sh 300 bash infra/environments/training/health.sh defaulted ||
    fail "JobSet's or Kueue's webhook does not answer as it should. Look at:" \
      "kubectl get pods --namespace jobset-system; kubectl get pods --namespace kueue-system" \
      "kubectl logs --namespace kueue-system deployment/kueue-controller-manager"
  # A change of a queue goes through Kueue's other webhooks.
  bash infra/environments/until.sh 300 kubectl label clusterqueues --all health=checked --dry-run=server ||
    fail "Kueue's webhook refuses a change of a ClusterQueue, or there is none."
}

queues() {
  local kind
  for kind in clusterqueues localqueues; do
    kubectl wait "$kind" --all --all-namespaces --for condition=Active --timeout 300s || {
      kubectl get "$kind" --all-namespaces --output \
        'jsonpath={range .items[*]}{.metadata.name}: {.status.conditions[?(@.type=="Active")].message}{"\n"}{end}' >&2 || true
      fail "Not all $kind are active: jobs would wait for ever. Above is why."
    }
  done
}

# Print Completed or Failed, once the JobSet is one of them.
ended() {
  local conditions
  conditions="$(kubectl get jobset "$JOBSET" --namespace "$1" \
    --output 'jsonpath={.status.conditions[?(@.status=="True")].type}')"
  case " $conditions " in
    *" Completed "*) echo Completed ;;
    *" Failed "*) echo Failed ;;
    *) return 1 ;;
  esac
}

remove() {
  kubectl delete jobset "$JOBSET" --namespace "$1" --ignore-not-found --timeout 300s
}

smoke() {
  local namespace hosts report admitted state reports whole
  read -r namespace hosts report < build/smoke/expected
  if ((hosts == 0)); then
    echo "No static slice stands, and this build buys none: no smoke JobSet. With the provisioner, one is bought for"
    echo "kubectl create --namespace $namespace --filename examples/training/device-check.yaml"
    return
  fi
  admitted="$(kubectl get clusterqueues --output 'jsonpath={.items[*].status.admittedWorkloads}')"
  if [[ "$admitted" == *[1-9]* ]]; then
    echo "Workloads run here already ($admitted admitted): no smoke JobSet, which would wait for their slices."
    return
  fi

  # shellcheck disable=SC2064 # the namespace of now
  trap "remove '$namespace'" EXIT
  remove "$namespace" # of a build that was cancelled
  kubectl create --filename build/smoke/jobset.json
  state="$(bash infra/environments/until.sh 1800 bash infra/environments/training/health.sh ended "$namespace")" ||
    state="not ended"
  reports="$(kubectl logs --namespace "$namespace" --selector "jobset.sigs.k8s.io/jobset-name=$JOBSET" --tail=-1)" ||
    reports=""
  printf '%s\n' "$reports"
  whole="$(grep --count --line-regexp --fixed-strings -- "$report" <<< "$reports")" || true # it fails if there are none
  if [[ "$state" == Completed && "$whole" == "$hosts" ]]; then
    echo "The smoke JobSet is whole: $hosts hosts report $report."
    return
  fi
  kubectl describe jobset "$JOBSET" --namespace "$namespace" >&2 || true
  kubectl get workloads,pods --namespace "$namespace" --output wide >&2 || true
  kubectl get events --namespace "$namespace" --sort-by .lastTimestamp >&2 || true
  fail "The smoke JobSet is $state, and not each of $hosts hosts reported \"$report\"." \
    "Above are its conditions, its pods and events. A pod that is pending tells why; a workload without quota is Kueue's." \
    "To see more, provision again, or create it yourself: examples/training/device-check.yaml"
}

"$@"
