#!/usr/bin/env bash
# Makes a project ready for `gcloud builds submit`, and each project with clusters that it is to serve. It can be run
# again, and changes only what is missing. Never run against a live project so far.
#
#   infra/bootstrap.sh --project PROJECT --region us-central1
#
#   --project PROJECT             where the provisioner is to run; default: gcloud's
#   --region REGION               of functions, images, and the buckets of the state and of builds' logs
#   --firestore-location PLACE    of the records: a region, or nam5 or eur3; default: REGION. It cannot be changed later
#   --state-bucket BUCKET         of Terraform's state; default: PROJECT-tpu-slice-state
#   --cluster-project PROJECT     has clusters; can be repeated; default: the provisioner's project
#   --notify EMAIL                is told of alerts, by a notification channel in each project; can be repeated
#   --worker-pool POOL            projects/P/locations/REGION/workerPools/W, if builds are to run in a private pool
#   --dry-run                     print each command that would be run if nothing was there yet, and run none
#   --remove                      take away what this made, but for the buckets; after infra/cloudbuild.destroy.yaml
#
# What the build's account may do, tpu-slice-deployer: it is neither owner nor editor, and has no key. But who may set
# the IAM policy of a project (roles/resourcemanager.projectIamAdmin) can make anybody its owner; and who may act as any
# of its service accounts, or change custom roles, has what these have. So it is as powerful as an owner, in this project
# and in those with clusters. Whoever may submit a build as it is so too: nobody may but owners, and who runs this.
set -euo pipefail

ACCOUNT=tpu-slice-deployer
APIS=(artifactregistry cloudbuild cloudfunctions cloudquotas cloudresourcemanager cloudscheduler compute container
  firestore iam iamcredentials logging monitoring orgpolicy pubsub run serviceusage storage)
CLUSTER_APIS=(cloudquotas cloudresourcemanager compute container iam logging monitoring serviceusage)
ROLES=(artifactregistry.admin cloudfunctions.developer cloudquotas.viewer cloudscheduler.admin datastore.owner
  iam.serviceAccountAdmin iam.serviceAccountUser logging.configWriter logging.logWriter logging.viewer
  monitoring.alertPolicyEditor monitoring.dashboardEditor monitoring.notificationChannelViewer pubsub.admin
  resourcemanager.projectIamAdmin run.admin serviceusage.serviceUsageAdmin storage.admin)
CLUSTER_ROLES=(container.admin iam.roleAdmin iam.serviceAccountAdmin logging.configWriter
  monitoring.alertPolicyEditor monitoring.notificationChannelViewer resourcemanager.projectIamAdmin)
# Predefined roles that have these can create machines, too.
CUSTOM_PERMISSIONS=cloudquotas.quotas.get,compute.images.get,compute.images.getFromFamily,compute.regionOperations.get
CUSTOM_PERMISSIONS+=,compute.resourcePolicies.create,compute.resourcePolicies.delete,compute.resourcePolicies.get
CUSTOM_PERMISSIONS+=,compute.routers.list,compute.subnetworks.get,compute.zones.get,orgpolicy.policy.get
CUSTOM_PERMISSIONS+=,serviceusage.services.get
# Google's own accounts, by which these services act in the project. Else they appear some time after the first use.
AGENTS=(artifactregistry cloudbuild cloudfunctions cloudscheduler pubsub run)
# Alerts notify the channels that have this label with the project's id: infra/preflight/spending.py.
MARK=tpu-slice-provisioner

fail() {
  printf 'bootstrap: %s\n' "$*" >&2
  exit 1
}

usage() {
  sed -n '2,/^set -euo/{/^#/s/^# \{0,1\}//p;}' "$0"
}

project="" region="" firestore_location="" state_bucket="" worker_pool="" dry_run="" remove=""
cluster_projects=() notify=()
while (($#)); do
  option=$1
  case "$option" in
    --dry-run) dry_run=yes ;;
    --remove) remove=yes ;;
    -h | --help) usage && exit ;;
    *)
      value="${2:-}"
      case "$option" in
        --project) project=$value ;;
        --region) region=$value ;;
        --firestore-location) firestore_location=$value ;;
        --state-bucket) state_bucket=$value ;;
        --cluster-project) cluster_projects+=("$value") ;;
        --notify) notify+=("$value") ;;
        --worker-pool) worker_pool=$value ;;
        *) fail "there is no option $option; --help has all" ;;
      esac
      [[ -n "$value" && "$value" != --* ]] || fail "$option needs a value; --help has all options"
      shift
      ;;
  esac
  shift
done
for each in ${notify[@]+"${notify[@]}"}; do
  [[ "$each" == *?@?* && "$each" != *[[:space:],]* ]] || fail "--notify $each: that is no e-mail address"
done
[[ -z "$dry_run" || -z "$remove" ]] || fail "--dry-run shows what is made: it does not go with --remove"

# Print a command, and run it unless this is a dry run; its output is of no interest.
run() {
  printf '%q ' "$@"
  printf '\n'
  [[ -n "$dry_run" ]] || "$@" > /dev/null
}

# Run a command that only reads, and print what it finds. In a dry run nothing is there.
read_only() {
  [[ -z "$dry_run" ]] && "$@" 2> /dev/null
}

# A new account is not known everywhere at once.
patiently() {
  local pause
  for pause in 2 4 8 16; do
    if run "$@"; then return; fi
    sleep "$pause"
  done
  run "$@"
}

check_tools() {
  command -v gcloud > /dev/null || fail "gcloud is not installed: https://cloud.google.com/sdk/docs/install"
  person="$(read_only gcloud config get-value account || true)"
  [[ -n "$person" ]] || fail "gcloud is not logged in: gcloud auth login"
  project="${project:-$(read_only gcloud config get-value project || true)}"
}

check_project() { # PROJECT
  local enabled
  gcloud projects describe "$1" --format 'value(projectNumber)' > /dev/null ||
    fail "$person cannot read the project $1: is it the id of a project? gcloud projects list"
  if enabled="$(read_only gcloud billing projects describe "$1" --format 'value(billingEnabled)')"; then
    [[ "$enabled" == True ]] ||
      fail "the project $1 has no billing account: gcloud billing projects link $1 --billing-account ACCOUNT"
  else
    printf 'bootstrap: whether %s has a billing account cannot be read; it needs one\n' "$1" >&2
  fi
}

enable() { # PROJECT API...
  local -a services=()
  local api
  for api in "${@:2}"; do services+=("$api.googleapis.com"); done
  run gcloud services enable "${services[@]}" --project "$1"
}

granted() { # PROJECT
  read_only gcloud projects get-iam-policy "$1" --flatten 'bindings[].members' --format 'value(bindings.role)' \
    --filter "bindings.members=serviceAccount:$deployer" || true
}

grant() { # PROJECT ROLE...
  local before role
  before="$(granted "$1")"
  for role in "${@:2}"; do
    grep -qxF -- "$role" <<< "$before" ||
      patiently gcloud projects add-iam-policy-binding "$1" --member "serviceAccount:$deployer" --role "$role" \
        --condition None
  done
}

revoke() { # PROJECT
  local role
  for role in $(granted "$1"); do
    run gcloud projects remove-iam-policy-binding "$1" --member "serviceAccount:$deployer" --role "$role" \
      --condition None
  done
}

make_buckets() {
  read_only gcloud storage buckets describe "gs://$state_bucket" > /dev/null ||
    run gcloud storage buckets create "gs://$state_bucket" --project "$project" --location "$region"
  run gcloud storage buckets update "gs://$state_bucket" --versioning --uniform-bucket-level-access \
    --public-access-prevention
  # A log is written anew as it grows, so no older version is kept.
  read_only gcloud storage buckets describe "gs://$logs_bucket" > /dev/null ||
    run gcloud storage buckets create "gs://$logs_bucket" --project "$project" --location "$region" \
      --uniform-bucket-level-access --public-access-prevention --soft-delete-duration 0
}

# Print each grant on the bucket of logs, by its own policy.
readers() {
  read_only gcloud storage buckets get-iam-policy "gs://$logs_bucket" --flatten 'bindings[].members' \
    --format 'csv[no-heading](bindings.role, bindings.members)' || true
}

# Print who may submit builds as the build's account, by its own policy.
users() {
  read_only gcloud iam service-accounts get-iam-policy "$deployer" --project "$project" \
    --flatten 'bindings[].members' --format 'value(bindings.members)' \
    --filter bindings.role=roles/iam.serviceAccountUser || true
}

make_account() {
  read_only gcloud iam service-accounts describe "$deployer" --project "$project" > /dev/null ||
    run gcloud iam service-accounts create "$ACCOUNT" --project "$project" \
      --display-name "TPU slice provisioner: deploys it"
  local kind=user
  [[ "$person" != *.gserviceaccount.com ]] || kind=serviceAccount
  grep -qxF -- "$kind:$person" <<< "$(users)" ||
    patiently gcloud iam service-accounts add-iam-policy-binding "$deployer" --project "$project" \
      --member "$kind:$person" --role roles/iam.serviceAccountUser --condition None
  grep -qxF -- "roles/storage.objectViewer,$kind:$person" <<< "$(readers)" ||
    run gcloud storage buckets add-iam-policy-binding "gs://$logs_bucket" --member "$kind:$person" \
      --role roles/storage.objectViewer
}

# Print whether the custom role of a project is there, deleted, or was never made.
role_state() { # PROJECT
  local deleted
  if ! deleted="$(read_only gcloud iam roles describe "$custom_role" --project "$1" --format 'value(deleted)')"; then
    printf 'none'
  elif [[ "$deleted" == True ]]; then
    printf 'deleted'
  else
    printf 'there'
  fi
}

# A role that was deleted can be had back for 7 days; nobody can make it anew before 37.
make_role() { # PROJECT
  local verb=update state
  state="$(role_state "$1")"
  [[ "$state" != deleted ]] || run gcloud iam roles undelete "$custom_role" --project "$1"
  [[ "$state" != none ]] || verb=create
  run gcloud iam roles "$verb" "$custom_role" --project "$1" --quiet --stage GA \
    --title "TPU slice provisioner of $project: deploys it" --permissions "$CUSTOM_PERMISSIONS"
}

# Print a field of each channel that this made in a project.
channels() { # PROJECT FIELD
  read_only gcloud beta monitoring channels list --project "$1" --type email --format "value($2)" \
    --filter "displayName='$channel' AND userLabels.$MARK='$project'" || true
}

make_channels() { # PROJECT
  ((${#notify[@]})) || return 0
  local before email
  before="$(channels "$1" labels.email_address)"
  for email in "${notify[@]}"; do
    grep -qxF -- "$email" <<< "$before" ||
      patiently gcloud beta monitoring channels create --project "$1" --type email --enabled \
        --display-name "$channel" --channel-labels "email_address=$email" --user-labels "$MARK=$project"
  done
}

remove_channels() { # PROJECT
  local name
  for name in $(channels "$1" name); do
    run gcloud beta monitoring channels delete "$name" --project "$1" --quiet
  done
}

remove_all() {
  ! read_only gcloud storage buckets describe "gs://$project-tpu-slice-functions" > /dev/null ||
    fail "the provisioner still stands: submit infra/cloudbuild.destroy.yaml, as it says there"
  local each
  for each in "$project" "${cluster_projects[@]}"; do
    revoke "$each"
    remove_channels "$each"
    [[ "$(role_state "$each")" != there ]] || run gcloud iam roles delete "$custom_role" --project "$each"
  done
  ! read_only gcloud iam service-accounts describe "$deployer" --project "$project" > /dev/null ||
    run gcloud iam service-accounts delete "$deployer" --project "$project" --quiet
  printf '\nWhat remains: enabled APIs, and the state and the logs of builds, which you can delete:\n'
  printf '  gcloud storage rm --recursive gs://%s gs://%s\n' "$state_bucket" "$logs_bucket"
}

make_all() {
  local each
  enable "$project" "${APIS[@]}"
  make_buckets
  make_account
  grant "$project" "${ROLES[@]/#/roles/}"
  for each in "${AGENTS[@]}"; do
    run gcloud beta services identity create --service "$each.googleapis.com" --project "$project"
  done
  make_channels "$project"
  for each in "${cluster_projects[@]}"; do
    if [[ "$each" != "$project" ]]; then
      enable "$each" "${CLUSTER_APIS[@]}"
      make_channels "$each"
    fi
    make_role "$each"
    grant "$each" "${CLUSTER_ROLES[@]/#/roles/}" "projects/$each/roles/$custom_role"
  done
}

print_next() {
  local pool="" place=""
  local settings="_STATE_BUCKET=$state_bucket,_REGION=$region,_FIRESTORE_LOCATION=$firestore_location"
  if [[ -n "$worker_pool" ]]; then
    place=" --region $(cut -d/ -f4 <<< "$worker_pool")"
    pool="$place --worker-pool $worker_pool"
    settings+=",_WORKER_POOL=$worker_pool"
  fi
  printf '\nNext, write infra/clusters/%s/CLUSTER.yaml for each cluster. Then, in the root of the sources:\n' "$project"
  # shellcheck disable=SC2016 # the commit is that of the moment when it is run
  printf '  gcloud builds submit --project %s%s --gcs-log-dir gs://%s --substitutions=%s,_COMMIT=$(git rev-parse HEAD)\n' \
    "$project" "$pool" "$logs_bucket" "$settings"
  printf 'It prints the log. If the build fails, its id is in the last line, and this prints the log again:\n'
  printf '  gcloud builds log --project %s%s BUILD\n' "$project" "$place"
  ((${#notify[@]})) || return 0
  printf 'Alerts notify %s. Whether mails arrive there nobody checks. After the build, this causes one within minutes:\n' \
    "${notify[*]}"
  printf '  gcloud pubsub topics publish dead-letters --project %s --message test\n' "$project"
  printf 'It is the alert "Messages were given up". This ends it:\n'
  # shellcheck disable=SC2016 # the time is that of the moment when it is run
  printf '  gcloud pubsub subscriptions seek dead-letters --project %s --time "$(date --utc +%%Y-%%m-%%dT%%H:%%M:%%SZ)"\n' \
    "$project"
}

person=PERSON
[[ -n "$dry_run" ]] || check_tools
[[ -n "$project" ]] || fail "which project? --project PROJECT"
[[ -n "$region" || -n "$remove" ]] || fail "which region? --region us-central1, for example"
firestore_location="${firestore_location:-$region}"
state_bucket="${state_bucket:-$project-tpu-slice-state}"
logs_bucket="$project-tpu-build-logs"
((${#cluster_projects[@]})) || cluster_projects=("$project")
deployer="$ACCOUNT@$project.iam.gserviceaccount.com"
custom_role="tpuSliceDeployer_${project//-/_}"
channel="TPU slice provisioner of $project"

if [[ -z "$dry_run" ]]; then
  check_project "$project"
  for each in "${cluster_projects[@]}"; do
    [[ "$each" == "$project" ]] || check_project "$each"
  done
fi
if [[ -n "$remove" ]]; then
  remove_all
else
  make_all
  print_next
fi
