#!/usr/bin/env bash
# Judges the log of `nhc -a -v` and prints one line: VERDICT: PASS, FAIL or UNKNOWN, the reason, and the numbers.
# Usage: NODE_NAME=... verdict.sh LOG CONFIGURATION
# Exit code: 0 every check of the configuration ran to its end without a fault; 1 a check found a fault, or never ended;
# 2 unknown: a check could not run, nhc was stopped, or the log is incomplete.
# Usage: verdict.sh --failed LOG
# Prints the checks that found a fault, one per line, as in the configuration.
set -euo pipefail

# Prints a line for each event in the log: `KIND<tab>CHECK<tab>TEXT`. Kinds: ran, passed, fault, unknown, ended.
# Lines of nhc and its tests, with any prefix (mej/nhc 1.4.3, whose `dbg` begins with "DEBUG:  "; Azure/azurehpc-health-checks v0.4.5,
# customTests):
#   Running check:  "check_gpu_count 8"                            with -v, or `... (forked PID 7)` with -f
#   ERROR:  nhc:  Health check failed:  TEXT                       also `Node Health Check failed.  TEXT`, `nhc[7]: Health check failed:`
#   ERROR:  nhc:  2 health checks failed.                          at the end, or:
#   Node Health Check completed successfully (9s).                 with -v
# A fault code may follow some lines later; NHCNA is not a fault of the node. Some tests pass `-e` or `\t` to the logging function.
# Tests that cannot run log "Skipping", or bash or a program logs an error; they still pass.
# shellcheck disable=SC2016
readonly EVENTS='
function event(kind, text) {
  if (!(seen[kind, check, text]++) || kind == "ran") printf "%s\t%s\t%s\n", kind, check, text
}
function failed(text) {
  sub(/^((-e|\\t) *)*/, "", text)
  if (text ~ /Terminated by signal/) return event("unknown", "nhc was stopped: " text (check ? " Last check: " check : ""))
  if (text ~ /^Script timed out|atchdog timer unable/) {
    timed_out = 1
    if (check && !index(text, check)) text = text " Last check: " check
  }
  open = text
}
function close_failure() {
  if (open != "") event(open codes ~ /NHCNA/ ? "unknown" : "fault", open)
  open = codes = ""
}
{
  sub(/^\357\273\277/, "") # a byte-order mark
  gsub(/\r/, "")
  gsub(/\033\[[0-9;?]*[A-Za-z]/, "")
  known = 1
}
match($0, /Running check: +"/) {
  close_failure()
  prefix = substr($0, 1, RSTART - 1)
  check = substr($0, RSTART + RLENGTH)
  sub(/"( \(forked PID [0-9]+\))? *$/, "", check)
  gsub(/[0-9-]*T?[0-9]+:[0-9]+:[0-9.,]+(Z|[-+][0-9:]+)?|\[ *[0-9.]+\]( -)?|(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +[0-9]+/, "", prefix)
  gsub(/ /, "", prefix)
  if (lines++ && prefix != before) event("unknown", "the log has lines of several nodes")
  before = prefix
  event("ran", "")
  next
}
match($0, /[Hh]ealth [Cc]heck failed[:.] */) { close_failure(); failed(substr($0, RSTART + RLENGTH)); next }
/[0-9]+ health checks failed|Node Health Check completed/ {
  close_failure()
  if (!/completed successfully/ && !faults_seen()) event("unknown", "nhc counts failures that the log does not show")
  event("ended", "")
  check = ""
  next
}
match($0, /Checking node /) && ENVIRON["NODE_NAME"] && substr($0, RSTART + RLENGTH) != ENVIRON["NODE_NAME"] {
  event("unknown", "the log is of another node: " substr($0, RSTART + RLENGTH))
}
# check_gpu_clock_throttling only warns. In NVML (nvmlClocksEventReasons), bits 0x8, 0x40 and 0x80 are slowdowns by the hardware.
match($0, /GPU [0-9]+ throttled, reason=.*/) {
  close_failure()
  text = "check_gpu_clock_throttling: " substr($0, RSTART)
  if (text !~ /=0x[0-9a-fA-F]+ *$/) event("unknown", text)
  else if (text ~ /=0x[0-9a-fA-F]*([4-9a-fA-F][0-9a-fA-F]|[89a-fA-F]) *$/) event("fault", text " (" slowdowns(text) ")")
  next
}
/This XID has been reported before/ { close_failure(); event("fault", "check_gpu_xid: " $0); next }
/atchdog timer .* has expired/ { expired = check }
/[Ss]kipping.* test|test skipped|not found, skipping|NVLINK is not enabled|(passed|BW=)[^0-9]*[ =]G(B\/s|bps)|test failed to run|count not supported/ {
  close_failure()
  event("unknown", index($0, "check_") ? substr($0, index($0, "check_")) : $0)
  next
}
match($0, /check_[a-z0-9_]*: command not found/) {
  close_failure()
  event("unknown", substr($0, RSTART, index(substr($0, RSTART), ":") - 1) " is not in this image")
  next
}
open != "" {
  if (/^(SUCCESS|WARNING|ERROR|DEBUG)|(SUCCESS|WARNING|DEBUG): /) close_failure()
  else codes = codes $0
}
check && open == "" && shows_failure($0) {
  event("unknown", check ": its script failed: " $0)
  next
}
# A test of v0.4.4 prints this line without a text. check_nvBW_gpu_bw is a part of check_gpu_bw.
match($0, /SUCCESS: .*Health check passed: */) {
  text = substr($0, RSTART + RLENGTH)
  name = text == "" ? check : text
  sub(/[: ].*/, "", name)
  sub(/_(nvBW|rocm)_/, "_", name)
  printf "passed\t%s\t%s\n", name, text
  # Some report each device separately.
  if (index(check " ", name " ") == 1 && name !~ /nvlink_status|ib_bw/) passed = check
}
END {
  close_failure()
  if (check && passed == check) event("ended", "")
  check = expired
  if (expired && !timed_out) event("fault", "Script timed out. Last check: " check)
}
# A test passes even if one of its programs crashes, so any word of failure counts, except in lines of healthy tests.
function shows_failure(text) {
  text = tolower(text)
  if (text ~ /(success|warning): +[^ ]*nhc|(^|[^a-z])debug: |skipping this xid error|nccl info|algbw +busbw +error/) return 0
  if (text ~ /gpu id [0-9]+: (no gpu row|normal |row remap [a-z ]*, \((0|no)\))|iteration [0-9]+ of [0-9]+ failed: |flapping entry in syslog, /) return 0 # of aznhc
  if (text ~ /\(non-fatal\) *$|(killed|terminated) successfully|openfabrics device\.?$|have sent help message|help \/ error messages/) return 0 # nhc, Open MPI
  gsub(/default|avg error less than|[a-z][a-z \/-]* +: *(0|no|none|false|n\/a|not active) *$/, "", text) # the latter as nvidia-smi -q has it
  gsub(/(^|[^a-z])(no|without)( [a-z0-9]+)? ?([a-z0-9]+ )?errors?|(^|[^a-z])no (gpu )?xids?( [0-9]+)?( error)?|[^a-z]has 0 [a-z]* ?errors?|errors?( count)? *[:=] *(0|no|none) *$/, "", text)
  return text ~ /error|err!|fail|fault|abort|can ?not|can.t |could ?n.t|could not|unable|killed|core dump|dumped core|terminat|traceback|exception|out of memory|timed? ?-?out|denied|refused|not ready|not found|no such |no devices were found|nhc: (eval: )?line [0-9]+: |(expression|operator) expected|\(standard_in\) [0-9]+: / ||
    text ~ /not respond|unresponsive|unreachable|inaccessible|disconnected|corrupt|uncorrect|degraded|mismatch|missing|invalid|illegal|insufficient|unexpected|not enough|broken|require[sd]? (a )?reset|reset (is )?required|be reset|fell off|fallen off|lockup|segfault|no.(route|space|response|carrier)|offline|pending *: *yes|(link|state|port)[ :=]+(is )?down|below (the )?(threshold|expected|minimum)/ ||
    text ~ /stale file|read-only file|too many open|(not|in)(-| a | yet | )?(connected|initialized|loaded|running|valid|active|compatible)|uninitialized|undefined symbol|unrecognized|out of range|resource busy/ ||
    text ~ /(returned|with( exit)? code) [1-9]|no (cuda-capable )?device|connection closed|closed connection|downgraded|vanished|blocked by|exceeds|state *: *in progress|polling/ ||
    text ~ /(remap[a-z]*|reset|retire[a-z]*) pending|pending (reset|retire)|(double.bit|uncorr[a-z.]*) ecc[^:]*: *[1-9]/ ||
    text ~ /(^|[^a-z0-9_-])(lost|bad|dead|fatal|hung|hangs|stuck|panic|s?xid)([^a-z0-9_-]|$)/
}
function slowdowns(reason) {
  sub(/ *$/, "", reason)
  return substr((reason ~ /[89a-fA-F]$/ ? ", hardware slowdown" : "") \
    (reason ~ /[4-7c-fC-F].$/ ? ", hardware thermal slowdown" : "") \
    (reason ~ /[89a-fA-F].$/ ? ", hardware power brake slowdown" : ""), 3)
}
function faults_seen(key) {
  for (key in seen) if (key ~ /^(fault|unknown)/) return 1
}'

events() { cat "$1" 2>/dev/null | NODE_NAME=${NODE_NAME:-} LC_ALL=C awk "$EVENTS" || true; }

if [[ $1 == --failed ]]; then
  # A fault outside a check has its name before the first colon.
  events "$2" | awk -F '\t' '$1 == "fault" { if ($2 == "") { sub(/:.*/, "", $3); $2 = $3 } if (!seen[$2]++) print $2 }'
  exit
fi

log=$1 configuration=$2

# Returns whether a host mask (mej/nhc, mcheck) matches this node: a glob or /regular expression/. Others may match.
of_node() {
  # shellcheck disable=SC2053
  case $1 in
    "{"* | "@"* | "&"* | "!{"* | "!@"* | "!&"*) ;;
    "!"*) ! of_node "${1#!}" ;;
    /*) [[ $NODE_NAME =~ ${1:1:-1} ]] ;;
    *) [[ $NODE_NAME == $1 ]] ;;
  esac
}

# Prints the configuration's checks for this node as nhc does.
wanted() {
  local line mask check
  while IFS= read -r line || [[ -n $line ]]; do
    line=${line%$'\r'}
    [[ $line == *'||'* ]] || continue
    read -r mask <<<"${line%%||*}"
    read -r check <<<"${line#*||}"
    if [[ -n $mask && $mask != '#'* && -n $check ]] && of_node "$mask"; then echo "$check"; fi
  done < <(cat "$configuration" 2>/dev/null)
}

found=$(events "$log")
of_kind() { awk -F '\t' -v kind="$1" '$1 == kind { print $'"$2"' }' <<<"$found"; }
faults=$(of_kind fault 3)
unknown=$(of_kind unknown 3)
checks=$(wanted)
ran=$(of_kind ran 2)
# Prints the second text's lines that the first does not have as often.
beyond() { printf '%s\n\n%s\n' "$1" "$2" | awk 'below { if ($0 != "" && first[$0]-- <= 0) print; next } { first[$0]++ } $0 == "" { below = 1 }'; }
missing=$(beyond "$ran" "$checks")
repeated=$(beyond "$checks" "$ran")
count=$(grep -c . <<<"$checks" || true)

# Prints the checks without SUCCESS in the log, and the number of their lines. Since v0.4.1, aznhc's tests print SUCCESS
# when they pass: most once, some for each device that they find, so a lost device has no line. check_ib_link_flapping
# does not always print it, and check_gpu_xid only since v0.4.3. Before v0.4.1, which has no check_nvme_count (v0.4.5),
# no test does.
# shellcheck disable=SC2016
readonly PASSED='
BEGIN {
  count = split("app_gpu_clocks cpu_stream gpu_bw gpu_count gpu_ecc gpu_persistence gpu_xgmi gpu_xid hw_topology nccl_allreduce " \
    "nccl_allreduce_ib_loopback nvme_count nvsmi_healthmon rccl_allreduce vbios_version", names, " ")
  while (count) once["check_" names[count--]]
}
/^check_/ {
  split($0, words, " ")
  line[words[1]] = $0
  if (!wants[words[1]]++) order[++checks] = words[1]
  argument[words[1]] = words[2] + 0
  sub(/:.*/, "", words[3])
  if (words[1] == "check_hw_ib" && words[3] !~ /^$|_an[0-9]|^mana/ && !(words[3] in ports)) ports[words[3]] = ++hcas # the latter are Ethernet
}
$1 == "passed" && $2 in wants {
  required = 1
  if ($3 ~ /Bandiwdth/) delete once["check_gpu_xid"] # v0.4.1 and v0.4.2
  device = match($3, /IB=[^ ,]+|GPU [0-9]+ /) ? substr($3, RSTART, RLENGTH) : NR
  has[$2] += $2 in once || !(($2, device) in seen)
  seen[$2, device]
}
END {
  if (!required && !wants["check_nvme_count"]) exit
  for (i = 1; i <= checks; i++) {
    name = order[i]
    needs = name in once ? wants[name] : 0
    if (name ~ /^check_(ib_bw_(non_)?gdr|nvlink_status)$/) {
      needs = name ~ /ib_bw/ ? hcas : argument[name]
      if (!needs && name !~ /non_gdr/) needs = argument["check_gpu_count"] # GPUDirect RDMA: a GPU for each HCA
      if (!needs) needs = 1
    }
    if (has[name] + 0 < needs) print line[name] ", " has[name] + 0 " of " needs
  }
}'
lacking_success() {
  local required=0
  grep -qs 'Health check passed' "${NHC_TESTS:-/etc/nhc/scripts}/azure_common.nhc" && required=1 # the tests of this image
  printf '%s\n' "$checks" "$found" | LC_ALL=C awk -F '\t' -v required="$required" "$PASSED"
}

# Prints its argument's first line, and the number of others.
first() {
  local count
  count=$(grep -c . <<<"$1")
  head -n 1 <<<"$1" | tr -d '\n'
  ((count == 1)) || printf ' (and %d more)' $((count - 1))
}

verdict() {
  local code=$1 text=$2
  echo "VERDICT: $text; node=$NODE_NAME checks=$((count - $(grep -c . <<<"$missing" || true)))/$count"
  exit "$code"
}

[[ -z $faults ]] || verdict 1 "FAIL $(first "$faults")"
[[ -z $unknown ]] || verdict 2 "UNKNOWN $(first "$unknown")"
((count > 0)) || verdict 2 "UNKNOWN $configuration has no checks"
[[ -z $missing ]] || verdict 2 "UNKNOWN the log does not show (nhc -v) that this ran: $(first "$missing")"
[[ -z $repeated ]] || verdict 2 "UNKNOWN the log has another run or configuration, too: $(first "$repeated")"
[[ $found == *$'\nended\t'* ]] || verdict 2 "UNKNOWN nhc did not finish; its last check: ${ran##*$'\n'}"
lacking=$(lacking_success)
[[ -z $lacking ]] || verdict 2 "UNKNOWN the log does not show (SUCCESS) that this passed: $(first "$lacking")"
verdict 0 PASS
