#!/usr/bin/env bash
# Makes a project ready for the builds of an environment: APIs, the buckets of Terraform's state and of the builds' logs, and
# the account that the builds run as. It can be run again, and changes only what is missing. Never run against a live project so far.
#
#   infra/environments/bootstrap.sh training --project PROJECT --region us-central2
#
#   --project PROJECT       where the environment is to be
#   --region REGION         of the buckets; default: us-central1
#   --state-bucket BUCKET   of Terraform's state; default: PROJECT-tf-state
#   --check                 print the commands for what is missing, run none, and fail if there are any: so builds begin
#   --remove                take the account and its roles away; after the destroy build
#
# What the account may do: it is neither owner nor editor, and has no key. But who may set the IAM policy of a project
# (roles/resourcemanager.projectIamAdmin) can make anybody its owner, so it is as powerful as one. Whoever may submit a build
# as it is so too: nobody may but owners, and who runs this.
set -euo pipefail

fail() {
  printf 'bootstrap: %s\n' "$*" >&2
  exit 1
}

# Of every environment.
APIS=(artifactregistry cloudbuild cloudresourcemanager compute container iam iamcredentials logging monitoring serviceusage
  storage)
ROLES=(artifactregistry.admin compute.networkAdmin compute.securityAdmin container.admin iam.serviceAccountAdmin
  iam.serviceAccountUser logging.logWriter resourcemanager.projectIamAdmin serviceusage.serviceUsageAdmin storage.admin)

environment="${1:-}"
case "$environment" in
  training)
    ACCOUNT=tpu-training-builder
    APIS+=(aiplatform dns)
    # The last one for workload policies of tpu7x, and to look for disks in the end. Node pools are machines anyway.
    ROLES+=(aiplatform.admin monitoring.dashboardEditor compute.instanceAdmin.v1)
    ;;
  triton)
    ACCOUNT=triton-builder
    APIS+=(gkehub mesh)
    ROLES+=(compute.viewer gkehub.admin) # the first one to look for disks in the end
    ;;
  -h | --help) sed -n '2,/^set -euo/{/^#/s/^# \{0,1\}//p;}' "$0" && exit ;;
  *) fail "which environment? training or triton" ;;
esac
shift

project="" region=us-central1 state_bucket="" check="" remove=""
while (($#)); do
  option=$1
  case "$option" in
    --check) check=yes ;;
    --remove) remove=yes ;;
    *)
      value="${2:-}"
      case "$option" in
        --project) project=$value ;;
        --region) region=$value ;;
        --state-bucket) state_bucket=$value ;;
        *) fail "there is no option $option; --help has all" ;;
      esac
      [[ -n "$value" && "$value" != --* ]] || fail "$option needs a value; --help has all options"
      shift
      ;;
  esac
  shift
done
[[ -z "$check" || -z "$remove" ]] || fail "--check changes nothing: it does not go with --remove"
[[ -n "$project" ]] || fail "which project? --project PROJECT"
state_bucket="${state_bucket:-$project-tf-state}"
logs_bucket="$project-tpu-build-logs" # of all builds of the project
builder="$ACCOUNT@$project.iam.gserviceaccount.com"
missing=0

# Print a command, and run it unless this only checks; its output is of no interest.
run() {
  missing=$((missing + 1))
  printf '%q ' "$@"
  printf '\n'
  [[ -n "$check" ]] || "$@" > /dev/null
}

# A new account is not known everywhere at once.
patiently() {
  local pause
  [[ -z "$check" ]] || { run "$@" && return; }
  for pause in 2 4 8 16; do
    if run "$@"; then return; fi
    sleep "$pause"
  done
  run "$@"
}

# Enable what is off; all at once, since each call takes long.
enable() {
  local on api
  local -a off=()
  on="$(gcloud services list --enabled --project "$project" --format 'value(config.name)')" || on=""
  for api in "${APIS[@]/%/.googleapis.com}"; do
    grep -qxF -- "$api" <<< "$on" || off+=("$api")
  done
  ((${#off[@]} == 0)) || run gcloud services enable "${off[@]}" --project "$project"
}

make_buckets() {
  gcloud storage buckets describe "gs://$state_bucket" > /dev/null ||
    run gcloud storage buckets create "gs://$state_bucket" --project "$project" --location "$region" \
      --uniform-bucket-level-access --public-access-prevention
  local versioning
  versioning="$(gcloud storage buckets describe "gs://$state_bucket" --format 'value(versioning_enabled)')" || versioning=""
  [[ "$versioning" == True ]] || run gcloud storage buckets update "gs://$state_bucket" --versioning
  # A log is written anew as it grows, so no older version is kept.
  gcloud storage buckets describe "gs://$logs_bucket" > /dev/null ||
    run gcloud storage buckets create "gs://$logs_bucket" --project "$project" --location "$region" \
      --uniform-bucket-level-access --public-access-prevention --soft-delete-duration 0
}

# Print each grant on the bucket of logs, by its own policy.
readers() {
  gcloud storage buckets get-iam-policy "gs://$logs_bucket" --flatten 'bindings[].members' \
    --format 'csv[no-heading](bindings.role, bindings.members)'
}

# Print the members of a role in the account's own policy: they may submit builds as it.
users() {
  gcloud iam service-accounts get-iam-policy "$builder" --project "$project" --flatten 'bindings[].members' \
    --format 'value(bindings.members)' --filter bindings.role=roles/iam.serviceAccountUser
}

make_account() {
  gcloud iam service-accounts describe "$builder" --project "$project" > /dev/null ||
    run gcloud iam service-accounts create "$ACCOUNT" --project "$project" --display-name "Builds of the $environment environment"
  local person kind=user
  person="$(gcloud config get-value account)"
  [[ "$person" != *.gserviceaccount.com ]] || kind=serviceAccount
  grep -qxF -- "$kind:$person" <<< "$(users)" ||
    patiently gcloud iam service-accounts add-iam-policy-binding "$builder" --project "$project" \
      --member "$kind:$person" --role roles/iam.serviceAccountUser --condition None
  grep -qxF -- "roles/storage.objectViewer,$kind:$person" <<< "$(readers)" ||
    run gcloud storage buckets add-iam-policy-binding "gs://$logs_bucket" --member "$kind:$person" \
      --role roles/storage.objectViewer
}

# Print the roles that the project's own policy grants to the account.
granted() {
  gcloud projects get-iam-policy "$project" --flatten 'bindings[].members' --format 'value(bindings.role)' \
    --filter "bindings.members=serviceAccount:$builder"
}

grant() {
  local before role
  before="$(granted)" || before=""
  for role in "${ROLES[@]/#/roles/}"; do
    grep -qxF -- "$role" <<< "$before" ||
      patiently gcloud projects add-iam-policy-binding "$project" --member "serviceAccount:$builder" --role "$role" \
        --condition None
  done
}

remove_all() {
  local role
  for role in $(granted); do
    run gcloud projects remove-iam-policy-binding "$project" --member "serviceAccount:$builder" --role "$role" \
      --condition None
  done
  ! gcloud iam service-accounts describe "$builder" --project "$project" > /dev/null ||
    run gcloud iam service-accounts delete "$builder" --project "$project" --quiet
  printf '\nWhat remains: enabled APIs, and the state and the logs of builds, which you can delete:\n'
  printf '  gcloud storage rm --recursive gs://%s gs://%s\n' "$state_bucket" "$logs_bucket"
}

if [[ -n "$remove" ]]; then
  remove_all
  exit
fi
enable
make_buckets
[[ -n "$check" ]] || make_account # a build that checks runs as the account
grant
if [[ -n "$check" ]] && ((missing)); then
  echo "bootstrap: not ready. Run the commands above, or, for all of them:" >&2
  echo "infra/environments/bootstrap.sh $environment --project $project --state-bucket $state_bucket" >&2
  exit 1
fi
