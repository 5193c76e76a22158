#!/usr/bin/env bash
# Joins a host of a slice on Compute Engine to its cluster with kubeadm. Compute Engine runs it at every boot, as root, on an
# image of Ubuntu or Debian; it goes on until the host has joined, however long that takes, and then does nothing more.
#
# All that it needs is in the instance's own metadata:
#   kubernetes-version        1.36: the minor version of kubelet and kubeadm
#   kubeadm-control-plane     10.0.0.2:6443
#   kube-labels, kube-taints  key=value,...  and  key=value:effect,...: what the node registers with
#   kubeadm-join-token, kubeadm-ca-hash: set on each instance once a token was made, and removed when all hosts have joined.
#                             A token that expired is replaced; so both are read again before each attempt.
#
# How far it is, is in the guest attributes tpu-slice-provisioner/state (preparing, waiting-for-token, joining, joined) and
# tpu-slice-provisioner/error, which is empty while all goes well:
#   gcloud compute instances get-guest-attributes NAME --zone ZONE --query-path tpu-slice-provisioner/
# The token is never printed: neither here, nor in what kubeadm says.
set -euo pipefail

readonly METADATA="http://${GCE_METADATA_HOST:-metadata.google.internal}/computeMetadata/v1"
readonly RUNTIME=unix:///run/containerd/containerd.sock
readonly JOINED=/var/lib/tpu-slice-provisioner/joined # whether kubeadm has ended well, before this boot or in it
readonly SCRATCH=/run/tpu-slice-provisioner           # in memory: it has the token for a while
readonly LONGEST_PAUSE=120                            # seconds, between two attempts at anything
readonly ERROR_CHARACTERS=1000

export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1

token="" hashes="" etag=0 told_state="" told_error=unknown

log() {
  printf 'tpu-slice-provisioner: %s\n' "$*"
}

# --- the metadata server

ask() { # PATH [OPTION...]: prints what curl gets
  local path="$1"
  shift
  curl --silent --show-error --noproxy '*' --connect-timeout 5 --max-time 15 --header 'Metadata-Flavor: Google' "$@" \
    "$METADATA/$path"
}

# Sets `value` to what the metadata server has, empty if it has nothing there; waits for a server that does not answer.
read_value() { # PATH
  local answer pause=1
  while true; do
    answer="$(ask "$1" --write-out '\n%{http_code}')" || answer=""
    value="${answer%$'\n'*}"
    case "${answer##*$'\n'}" in
      200) return ;;
      404)
        value=""
        return
        ;;
    esac
    log "the metadata server does not answer for $1"
    sleep "$pause"
    pause="$(longer "$pause")"
  done
}

# Waits until an attribute changes that was not read yet, at most so many seconds.
wait_for_change() { # SECONDS
  local headers="$SCRATCH/headers" query
  query="instance/attributes/?recursive=true&wait_for_change=true&timeout_sec=$1&last_etag=$etag"
  if ask "$query" --fail --max-time "$(($1 + 15))" --dump-header "$headers" --output /dev/null; then
    etag="$(sed --quiet --regexp-extended 's/^etag: *([^[:space:]]+).*$/\1/Ip' "$headers")"
    etag="${etag:-0}"
  else
    sleep "$1"
  fi
}

set_guest_attribute() { # KEY VALUE
  local path="instance/guest-attributes/tpu-slice-provisioner/$1"
  if [[ -z "$2" ]]; then
    ask "$path" --output /dev/null --request DELETE || true # there may be none
  elif ! ask "$path" --fail --output /dev/null --request PUT --data-binary "$2"; then
    log "the guest attribute $1 could not be set; is enable-guest-attributes TRUE?"
  fi
}

tell() { # STATE [ERROR]
  local error="${2:-}"
  error="${error:0:ERROR_CHARACTERS}"
  if [[ "$1" != "$told_state" ]]; then
    log "$1"
    told_state="$1"
    set_guest_attribute state "$1"
  fi
  if [[ "$error" != "$told_error" ]]; then
    [[ -z "$error" ]] || log "$error"
    told_error="$error"
    set_guest_attribute error "$error"
  fi
}

# Sets `value` to an attribute that must look as the pattern says; waits as long as it does not.
require() { # KEY PATTERN
  read_value "instance/attributes/$1"
  until [[ "$value" =~ ^$2$ ]]; do
    tell "$told_state" "metadata $1: $([[ -n "$value" ]] && echo "\"$value\" is not of the form $2" || echo "missing")"
    wait_for_change "$LONGEST_PAUSE"
    read_value "instance/attributes/$1"
  done
}

# --- patience

longer() { # SECONDS
  echo $(($1 * 2 < LONGEST_PAUSE ? $1 * 2 : LONGEST_PAUSE))
}

persistently() { # COMMAND...
  local pause=5 failed
  while true; do
    set +o errexit # what is tested, as by `until`, does not end at its first error
    (
      set -o errexit
      "$@"
    ) 2>&1 | tee "$SCRATCH/step.log"
    failed="$?"
    set -o errexit
    ((failed)) || break
    tell "$told_state" "$1 failed, and is tried again: $(last_lines "$SCRATCH/step.log")"
    sleep "$pause"
    pause="$(longer "$pause")"
  done
  tell "$told_state"
}

last_lines() { # FILE
  tail --lines 5 "$1" | tr '\n' ' '
}

packages() { # COMMAND...: the lock is awaited, whoever has it
  apt-get --quiet --yes -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@"
}

# --- the host

prepare_kernel() {
  swapoff --all
  if [[ -e /etc/fstab ]]; then # nor after the next boot
    sed --in-place --regexp-extended 's/^([^#[:space:]]+[[:space:]]+\S+[[:space:]]+swap[[:space:]].*)$/# \1/' /etc/fstab
  fi
  printf '%s\n' overlay br_netfilter >/etc/modules-load.d/tpu-slice-provisioner.conf
  modprobe --all overlay br_netfilter
  printf '%s = 1\n' net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables net.ipv4.ip_forward \
    >/etc/sysctl.d/90-tpu-slice-provisioner.conf
  sysctl --quiet --load /etc/sysctl.d/90-tpu-slice-provisioner.conf
}

install_packages() { # MINOR VERSION
  local missing=()
  command -v containerd >/dev/null || missing+=(containerd)
  command -v conntrack >/dev/null || missing+=(conntrack)
  if ! has_version "$1"; then
    missing+=(kubelet kubeadm)
    add_repository "$1"
  fi
  if ((${#missing[@]})); then
    packages update
    packages install --allow-change-held-packages --allow-downgrades "${missing[@]}"
  fi
  has_version "$1"
  apt-mark hold kubelet kubeadm >/dev/null
}

has_version() { # MINOR VERSION
  [[ "$(kubeadm version --output short 2>/dev/null)" == "v$1."* && "$(kubelet --version 2>/dev/null)" == *" v$1."* ]]
}

add_repository() { # MINOR VERSION
  local source="https://pkgs.k8s.io/core:/stable:/v$1/deb"
  local key=/etc/apt/keyrings/kubernetes.asc
  mkdir --parents /etc/apt/keyrings /etc/apt/sources.list.d /etc/apt/preferences.d
  curl --silent --show-error --fail --location --connect-timeout 10 --max-time 60 --output "$key" "$source/Release.key"
  echo "deb [signed-by=$key] $source/ /" >/etc/apt/sources.list.d/kubernetes.list
  # An image may bring another minor version, or a source of one.
  printf '%s\n' "Package: kubelet kubeadm" "Pin: version $1.*" "Pin-Priority: 1001" >/etc/apt/preferences.d/kubernetes
}

# What containerd would use, which is what its own version has by default and what the image says, with two changes: its CRI
# plugin is on, and control groups are systemd's, as kubeadm sets for kubelet.
configure_containerd() {
  local config=/etc/containerd/config.toml
  mkdir --parents /etc/containerd
  if [[ -s "$config" ]]; then
    containerd config dump >"$config.new"
  else
    containerd config default >"$config.new"
  fi
  sed --in-place --regexp-extended -e 's/^(\s*SystemdCgroup\s*=\s*)false/\1true/' \
    -e '/^\s*disabled_plugins/s/(["'\''])(io\.containerd\.grpc\.v1\.)?cri\1,?//' "$config.new"
  if ! grep --quiet --extended-regexp '^\s*SystemdCgroup\s*=\s*true' "$config.new"; then
    log "containerd's configuration has no SystemdCgroup"
    return 1
  fi
  if cmp --silent "$config.new" "$config"; then
    rm "$config.new"
  else
    mv "$config.new" "$config"
    systemctl restart containerd
  fi
  systemctl enable --now containerd
}

# --- joining

# Sets `token` and `hashes`; returns whether both are there.
read_credentials() {
  read_value instance/attributes/kubeadm-join-token
  token="$value"
  read_value instance/attributes/kubeadm-ca-hash
  hashes="$value"
  [[ -n "$token" && -n "$hashes" ]] || return 1
  if [[ ! "$token" =~ ^[a-z0-9]{6}\.[a-z0-9]{16}$ ]]; then
    tell waiting-for-token "metadata kubeadm-join-token: not a bootstrap token"
    return 1
  fi
  if [[ ! "$hashes" =~ ^sha256:[0-9a-f]{64}(,sha256:[0-9a-f]{64})*$ ]]; then
    tell waiting-for-token "metadata kubeadm-ca-hash: not sha256:HASH,..."
    return 1
  fi
}

await_credentials() {
  until read_credentials; do
    tell waiting-for-token "$told_error"
    wait_for_change 60
  done
}

# Prints the JoinConfiguration that this minor version of kubeadm reads.
join_configuration() {
  local each api=v1beta4
  ((${version#*.} >= 31)) || api=v1beta3
  printf '%s\n' "apiVersion: kubeadm.k8s.io/$api" "kind: JoinConfiguration" "discovery:" "  bootstrapToken:" \
    "    apiServerEndpoint: \"$control_plane\"" "    token: \"$token\"" "    caCertHashes:"
  for each in ${hashes//,/ }; do
    echo "      - \"$each\""
  done
  printf '%s\n' "nodeRegistration:" "  name: \"$name\"" "  criSocket: $RUNTIME" "  taints:${taints:+$'\n'}${taints:- []}"
  echo "  kubeletExtraArgs:"
  if [[ "$api" == v1beta4 ]]; then
    printf '    - name: %s\n      value: "%s"\n' provider-id "$provider_id" node-labels "$labels"
  else
    printf '    %s: "%s"\n' provider-id "$provider_id" node-labels "$labels"
  fi
}

# Prints kube-taints as a list of v1 Taints.
taints_of() { # KEY=VALUE:EFFECT,...
  local each pair
  for each in ${1//,/ }; do
    pair="${each%:*}"
    printf '    - {key: "%s", value: "%s", effect: %s}\n' "${pair%%=*}" "${pair#*=}" "${each##*:}"
  done
}

redacted() {
  local line
  while IFS= read -r line || [[ -n "$line" ]]; do
    printf '%s\n' "${line//"$token"/[token]}"
  done
}

join() {
  (
    umask 077
    join_configuration >"$SCRATCH/join.yaml"
  )
  local failed=0
  kubeadm join --config "$SCRATCH/join.yaml" 2>&1 | redacted | tee "$SCRATCH/kubeadm.log" || failed=1
  rm --force "$SCRATCH/join.yaml"
  return "$failed"
}

reset() { # what an attempt left: kubeadm takes it for another cluster's
  if ! kubeadm reset --force --cri-socket "$RUNTIME" >"$SCRATCH/reset.log" 2>&1; then
    log "kubeadm reset failed: $(last_lines "$SCRATCH/reset.log")"
  fi
}

join_until_joined() {
  local pause=5
  if [[ -e /etc/kubernetes/kubelet.conf || -e /etc/kubernetes/bootstrap-kubelet.conf ]]; then
    reset # the host was rebooted while it joined
  fi
  wait_for_change 1 # what is read after this is as new, or changes once more
  await_credentials
  tell joining
  until join; do
    tell joining "kubeadm join failed, and is tried again: $(last_lines "$SCRATCH/kubeadm.log")"
    reset
    wait_for_change "$pause" # another token is tried at once
    pause="$(longer "$pause")"
    await_credentials
  done
}

main() {
  local value
  mkdir --parents "$SCRATCH" "${JOINED%/*}"
  chmod 700 "$SCRATCH"
  exec 9>"$SCRATCH/lock"
  flock --nonblock 9 || exit 0 # somebody else runs it
  if [[ -e "$JOINED" ]]; then
    tell joined
    exit 0
  fi
  tell preparing
  require kubernetes-version '[0-9]+\.[0-9]+'
  readonly version="$value"
  require kubeadm-control-plane '[][A-Za-z0-9.:-]+:[0-9]+'
  readonly control_plane="$value"
  require kube-labels '[A-Za-z0-9./_=,-]+'
  readonly labels="$value"
  require kube-taints '([A-Za-z0-9./_-]+=[A-Za-z0-9._-]*:[A-Za-z]+(,|$))*'
  local taints
  taints="$(taints_of "$value")"
  read_value instance/name
  readonly name="$value"
  read_value instance/zone
  local zone="${value##*/}"
  read_value project/project-id
  readonly provider_id="gce://$value/$zone/$name"

  persistently prepare_kernel
  persistently install_packages "$version"
  persistently configure_containerd
  persistently systemctl enable kubelet
  join_until_joined
  touch "$JOINED"
  tell joined
}

main "$@"
