#!/usr/bin/env bash
# For scripts/validate-hardware, which sources this: its guests, what is asked in them, how answers are judged.
set -euo pipefail

# Set by validate-hardware.
: "${node?}" "${resource?}" "${namespace?}" "${run?}" "${work?}" "${guest?}" "${image?}" "${template?}" "${identity?}"
: "${user?}" "${guest_exec?}" "${guest_wait?}" "${poll?}" "${copy_command?}" "${samples?}" "${tolerance?}"

# until_true SECONDS COMMAND...: again and again until it succeeds; fails after that time.
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    if [ "$SECONDS" -ge "$end" ]; then return 1; fi
    sleep "$poll"
  done
}

kube() { kubectl -n "$namespace" "$@"; }

builtin_template() {
  if [ "$guest" = kata ]; then
    cat <<'YAML'
apiVersion: v1
kind: Pod
metadata:
  name: @NAME@
  namespace: @NAMESPACE@
  labels: {validate-hardware/run: "@RUN@", validate-hardware/guest: @NAME@}
spec:
  runtimeClassName: kata-qemu-nvidia-gpu
  restartPolicy: Never
  terminationGracePeriodSeconds: 30
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchFields: [{key: metadata.name, operator: In, values: ["@NODE@"]}]
  containers:
  - name: guest
    image: "@IMAGE@"
    command: [sleep, infinity]
    resources:
      limits: {"@RESOURCE@": @GPUS@}
YAML
    return
  fi
  cat <<'YAML'
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata:
  name: @NAME@
  namespace: @NAMESPACE@
  labels: {validate-hardware/run: "@RUN@", validate-hardware/guest: @NAME@}
spec:
  terminationGracePeriodSeconds: 30
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchFields: [{key: metadata.name, operator: In, values: ["@NODE@"]}]
  domain:
    firmware: {bootloader: {efi: {secureBoot: false}}}
    cpu: {cores: 8}
    memory: {guest: 32Gi}
    devices:
      gpus: @GPU_LIST@
      disks:
      - {name: root, disk: {bus: virtio}}
      - {name: cloudinit, disk: {bus: virtio}}
      interfaces: [{name: default, masquerade: {}}]
  networks: [{name: default, pod: {}}]
  volumes:
  - {name: root, containerDisk: {image: "@IMAGE@"}}
  - name: cloudinit
    cloudInitNoCloud:
      userData: |
        #cloud-config
        ssh_authorized_keys: ["@PUBLIC_KEY@"]
YAML
}

# The template's text with its placeholders filled in, for a guest with that many GPUs.
manifest() {
  local name=$1 gpus=$2 text key list
  if [ -n "$template" ]; then text=$(cat "$template"); else text=$(builtin_template); fi
  list=$(jq -nc --argjson n "$gpus" --arg resource "$resource" \
    '[range($n) | {name: "gpu\(.)", deviceName: $resource}]')
  key=
  if [ -n "$identity" ]; then key=$(cat "$identity.pub"); fi
  text=${text//@NAME@/"$name"}
  text=${text//@NAMESPACE@/"$namespace"}
  text=${text//@RUN@/"$run"}
  text=${text//@NODE@/"$node"}
  text=${text//@IMAGE@/"$image"}
  text=${text//@RESOURCE@/"$resource"}
  text=${text//@GPUS@/"$gpus"}
  text=${text//@GPU_LIST@/"$list"}
  printf '%s\n' "${text//@PUBLIC_KEY@/"$key"}"
}

guest_type() { if [ "$guest" = kata ]; then echo pod; else echo vmi; fi; }

start_guest() { manifest "$1" "$2" | kube apply -f - > /dev/null; }

# Only what carries this run's label, which nobody else sets.
delete_guests() {
  kube delete "$(guest_type)" -l "validate-hardware/run=$run" --ignore-not-found --wait=true \
    --timeout="${guest_wait}s" > /dev/null
}

# guest_run NAME COMMAND: a shell command in the guest.
guest_run() {
  if [ -n "$guest_exec" ]; then
    "$guest_exec" "$namespace" "$1" "$2" < /dev/null
  elif [ "$guest" = kata ]; then
    kube exec "$1" -- sh -c "$2" < /dev/null
  else
    virtctl ssh -n "$namespace" --identity-file "$identity" --command "$2" \
      --local-ssh-opts='-o BatchMode=yes' --local-ssh-opts='-o ConnectTimeout=10' \
      --local-ssh-opts='-o LogLevel=ERROR' --local-ssh-opts='-o StrictHostKeyChecking=no' \
      --local-ssh-opts='-o UserKnownHostsFile=/dev/null' "$user@vmi/$1" < /dev/null
  fi
}

guest_answers() { guest_run "$1" true > /dev/null 2>&1; }

# "ready", "failed" (for good: it was rejected, or it ended), or "waiting".
guest_state() {
  kube get "$(guest_type)" "$1" -o json | jq -r '
    if any(.status.conditions[]?; .type == "Ready" and .status == "True") then "ready"
    elif .status.phase == "Failed" or .status.phase == "Succeeded" then "failed"
    else "waiting" end'
}
is_decided() { [[ $(guest_state "$1") =~ ^(ready|failed)$ ]]; }

# Why a guest is not there: what kubelet and the scheduler say of its pod, on one line.
why_not_admitted() {
  kube get pods -l "validate-hardware/run=$run,validate-hardware/guest=$1" -o json 2> /dev/null | jq -r '
    [.items[] | "\(.status.phase) \(.status.reason // "") \(.status.message // "")",
      (.status.conditions // [] | .[] | select(.status == "False") | "\(.type): \(.message // .reason // "")")]
    | if length == 0 then "no pod was made for it" else join("; ") end' 2> /dev/null || echo "kubectl does not say"
}

# The PCI addresses that the processes of the guest's pod have open, by the kernel's word; a JSON list.
held_by() {
  local uids
  uids=$(kube get pods -l "validate-hardware/run=$run,validate-hardware/guest=$1" -o json | jq -c '[.items[].metadata.uid]')
  switchyard_json holders | jq -c --argjson uids "$uids" \
    '[.devices[] | select(any(.holders[]; .podUid as $uid | $uids | index($uid))) | .address] | sort'
}

# partition_of HELD: "ok ID" if the GPUs are exactly one active partition and no other active one has
# any of them; else what is wrong.
partition_of() {
  switchyard_json partitions | jq -r --argjson held "$1" '
    ([.partitions[].devices[]] | unique) as $board
    | ($held | map(select(. as $a | $board | index($a))) | sort) as $set
    | [.partitions[] | select((.devices | sort) == $set)] as $mine
    | [.partitions[] | select(.active and (.devices | sort) != $set and (.devices - $set) != .devices)] as $others
    | if (.live | not) then "no agent answers"
      elif ($set | length) == 0 then "it has no GPU open"
      elif ($mine | length) == 0 then "\($set | join(",")) are no partition"
      elif ($mine[0].active | not) then "partition \($mine[0].id) is not active"
      elif ($others | length) > 0 then "partition \($others[0].id) is active too and has some of its GPUs"
      else "ok \($mine[0].id)" end'
}

# topology GPUS NVLINKS: `nvidia-smi topo -m` on standard input; "ok", or the first pair that lacks links.
topology() {
  sed 's/\x1b\[[0-9;]*m//g' | awk -v gpus="$1" -v links="NV$2" '
    /^GPU[0-9]+[ \t]/ { # the heading begins with white space
      for (i = 0; i < gpus; i++) {
        wanted = (i == rows) ? "X" : links
        if ($(i + 2) != wanted && wrong == "") wrong = $1 " to GPU" i ": " $(i + 2) ", not " wanted
      }
      rows++
    }
    END {
      if (rows != gpus) print rows + 0 " GPUs, not " gpus
      else print wrong == "" ? "ok" : wrong
    }'
}

# `nvidia-smi -q` on standard input: each GPU's fabric state once, such as "Completed".
fabric_states() {
  awk '/^ *Fabric *$/ { fabric = 1; next } fabric && /^ *State *:/ { sub(/^[^:]*: */, ""); print; fabric = 0 }' |
    sort -u | paste -sd, -
}

is_number() { [[ $1 =~ ^[0-9]+(\.[0-9]+)?$ ]]; }

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# flat FILE RATE: "ok MIN..MAX" if every rate in it is within the tolerance of RATE.
flat() {
  awk -v rate="$2" -v tolerance="$tolerance" '
    !/^[0-9]+(\.[0-9]+)?$/ { if (bad == "") bad = "copying failed: " $0; next }
    NR == 1 || $1 < min { min = $1 }
    NR == 1 || $1 > max { max = $1 }
    END {
      if (bad != "") print bad
      else if (NR == 0) print "nothing was copied"
      else if (min < rate * (1 - tolerance / 100) || max > rate * (1 + tolerance / 100))
        print min ".." max " GB/s, and " rate " GB/s alone"
      else print "ok " min ".." max " GB/s; alone " rate " GB/s"
    }' "$1"
}

# copy_once NAME: the rate, or a line that is no number and failure.
copy_once() {
  local rate
  if rate=$(guest_run "$1" "$copy_command" 2>&1) && is_number "$rate"; then
    printf '%s\n' "$rate"
  else
    printf 'no rate: %s\n' "$(tr '\n' ' ' <<< "${rate:-nothing was printed}" | tail -c 200)"
    return 1
  fi
}

# copy_alone NAME: the median of some copies while nobody else copies; or the failure.
copy_alone() {
  local i file=$work/alone-$1
  : > "$file"
  for ((i = 0; i < samples; i++)); do
    copy_once "$1" >> "$file" || { tail -n 1 "$file"; return 1; }
  done
  median < "$file"
}

# start_copying NAME: in the background until stop_copying; one rate a line in $work/copy-NAME.
start_copying() {
  : > "$work/copy-$1"
  (
    while [ ! -e "$work/stop" ]; do
      copy_once "$1" >> "$work/copy-$1" || exit 1
    done
  ) &
  copiers+=($!)
}

# has_copied COUNT NAME...: each has that many lines, or has failed, which is no reason to wait.
has_copied() {
  local count=$1 name
  shift
  for name in "$@"; do
    if grep -q '^no rate' "$work/copy-$name"; then continue; fi
    [ "$(wc -l < "$work/copy-$name")" -ge "$count" ] || return 1
  done
}

stop_copying() {
  local pid
  touch "$work/stop"
  for pid in "${copiers[@]}"; do wait "$pid" || true; done
  copiers=()
  rm -f "$work/stop"
}
