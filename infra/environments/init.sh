#!/bin/sh
# Initializes roots of an environment, whose states are beside each other, with the providers of the first build: versions are
# exact, and with -upgrade the kept checksums are demanded all the same. It runs in Terraform's image, which has no bash.
#   init.sh ENVIRONMENT ROOT...
set -eu
environment="$1"
shift
for root in "$@"; do
  at="infra/environments/$environment/$root"
  if [ -f "build/kept/$root.lock.hcl" ]; then
    cp "build/kept/$root.lock.hcl" "$at/.terraform.lock.hcl"
  fi
  terraform -chdir="$at" init -input=false -upgrade \
    -backend-config="bucket=$_TF_STATE_BUCKET" -backend-config="prefix=$_TF_STATE_PREFIX/$root"
  cp "$at/.terraform.lock.hcl" "build/kept/$root.lock.hcl"
done
