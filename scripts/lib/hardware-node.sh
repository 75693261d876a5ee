#!/usr/bin/env bash
# For scripts/validate-hardware, which sources this: reports, the node and its agent, and the step `check`.
set -euo pipefail

# Set by validate-hardware.
: "${node?}" "${resource?}" "${namespace_only?}" "${run?}" "${work?}" "${host?}" "${in_pod?}" "${config?}"

passed=0 failed=0 skipped=0
# report VERDICT WHAT EXPECTED SAW
report() {
  printf '  %-4s  %s\n          expected: %s\n          saw:      %s\n' "$1" "$2" "$3" "$4"
  case "$1" in PASS) passed=$((passed + 1)) ;; FAIL) failed=$((failed + 1)) ;; *) skipped=$((skipped + 1)) ;; esac
}
# same WHAT EXPECTED SAW: passes if the two are equal.
same() { if [ "$2" = "$3" ]; then report PASS "$@"; else report FAIL "$@"; fi; }
# good WHAT EXPECTED ANSWER: passes if the answer is "ok" with or without more.
good() { case "$3" in ok | 'ok '*) report PASS "$1" "$2" "$3" ;; *) report FAIL "$@" ;; esac; }

on_host() { "${host[@]}" "$1" < /dev/null; }

# switchyard_json COMMAND: its JSON. `doctor` ends with 1 when it found an error, and prints all the same.
switchyard_json() {
  local pod line
  if [ -n "$in_pod" ]; then
    pod=$(kubectl -n "$in_pod" get pods -l app.kubernetes.io/name=switchyard \
      --field-selector "spec.nodeName=$node,status.phase=Running" -o 'jsonpath={.items[0].metadata.name}') || return 1
    kubectl -n "$in_pod" exec "$pod" -- /usr/bin/switchyard "$1" --config "$config" -o json > "$work/$1" < /dev/null || true
  else
    printf -v line 'switchyard %q --config %q -o json' "$1" "$config"
    on_host "$line" > "$work/$1" || true
  fi
  [ -s "$work/$1" ] && jq . "$work/$1"
}

fabric() { switchyard_json partitions | jq -r "$1"; }
# "none" if there are none; nothing if the agent does not answer, which is no "none".
active_ids() { fabric '[.partitions[] | select(.active) | .id] | sort | map(tostring) | if length == 0 then "none" else join(",") end'; }
board_size() { fabric '[.partitions[].modules[]] | unique | length'; }
fm_version() { on_host 'nv-fabricmanager --version' 2> /dev/null | grep -oE '[0-9]+\.[0-9]+(\.[0-9]+)?' | head -n 1 || true; }

# Who else has GPUs on the node: pods by their requests, processes by their open files.
tenants() {
  kubectl get pods --all-namespaces --field-selector "spec.nodeName=$node" -o json | jq -r --arg run "$run" '
    .items[]
    | select(.status.phase != "Succeeded" and .status.phase != "Failed")
    | select(.metadata.labels["validate-hardware/run"] != $run)
    | select([.spec.containers[], .spec.initContainers[]?] | any(.[] | .resources.limits // {} | keys[]; startswith("nvidia.com/")))
    | "pod \(.metadata.namespace)/\(.metadata.name)"' || return 1
  switchyard_json holders | jq -r '
    ([.devices[] | .address as $a | .holders[] | "process \(.pid) (\(.command)) with \($a) open"]
     + [.anyDevice[], .unreadable[] | "process \(.pid) (\(.command)), which may have any GPU open"]) | unique | .[]'
}

refuse_beside_tenants() {
  local found
  if $namespace_only; then
    if [ "$1" = restart-fm ]; then refuse "restart-fm touches every guest of the node: not with --namespace-only"; fi
    return
  fi
  found=$(tenants) || refuse "who has GPUs on $node can't be told: see above"
  [ -z "$found" ] || refuse "others have GPUs on $node: nothing was done. Drain it, or --namespace-only:
$found"
}

step_check() {
  local doctor gpus modules version
  echo "== check: what the node needs"
  doctor=$(switchyard_json doctor) || doctor='{"checks":[]}'
  for name in iommu kubelet 'fabric manager' agent; do
    good "doctor: $name" ok "$(jq -r --arg name "$name" '[.checks[] | select(.check == $name)] |
      if length == 0 then "no such check" else .[0] | "\(.status) \(.message)" end' <<< "$doctor")"
  done
  good 'doctor: everything else' 'no error' "$(jq -r '[.checks[] | select(.status == "error") | "\(.message); to do: \(.fix)"]
    | if length == 0 then "ok" else join("; ") end' <<< "$doctor")"
  modules=$(board_size) || modules=unknown
  gpus=$(switchyard_json inventory | jq '[.devices[] | select((.class | startswith("0x03")) and .ready)] | length') || gpus='no answer'
  same 'inventory: GPUs that are ready' "$modules, as many as the partitions have" "$gpus, as many as the partitions have"
  same 'partitions: the agent' 'live, Fabric Manager up' "$(fabric 'if .live and .known and .up then "live, Fabric Manager up"
    else "live \(.live), known \(.known), up \(.up): \(.error)" end')"
  same 'partitions: complete' 'every GPU has a module id and an address' "$(fabric '[.partitions[]
    | select((.complete | not) or (.devices | index(null))) | .id] | if length == 0
    then "every GPU has a module id and an address" else "not partitions \(map(tostring) | join(","))" end')"
  if ! $namespace_only; then same 'partitions: active on an empty node' none "$(active_ids)"; fi
  version=$(fm_version)
  if [ -n "$version" ]; then report PASS "Fabric Manager's version" 'known' "$version"; else
    report FAIL "Fabric Manager's version" 'known' 'nv-fabricmanager --version names none; is --host the node?'; fi
  kubectl get node "$node" -o json > "$work/node"
  same 'kubelet: the node' Ready "$(jq -r '.status.conditions[] | select(.type == "Ready") |
    if .status == "True" then "Ready" else "not Ready: \(.message)" end' "$work/node")"
  same "kubelet: allocatable $resource" "$gpus" "$(jq -r --arg r "$resource" '.status.allocatable[$r] // "none"' "$work/node")"
  good 'kubelet: version' '1.34 or later (PodResources Get)' "$(jq -r '.status.nodeInfo.kubeletVersion | . as $v
    | capture("^v(?<major>[0-9]+)\\.(?<minor>[0-9]+)") | [.major, .minor | tonumber] | if . >= [1, 34] then "ok \($v)" else $v end' "$work/node")"
}
