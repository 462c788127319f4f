#!/usr/bin/env bash
# Judges the output of nccl-tests with NCCL_DEBUG=INFO and prints one line: VERDICT: PASS or FAIL, the reason, and the numbers.
# Usage: NODES=2 [GPUS_PER_NODE=8] BUSBW_FLOOR_GBS=400 BUSBW_EXPECTED_GBS=450 verdict.sh LOG
# Only the floor decides. The bandwidth of a healthy fabric (empty if unknown) is printed for comparison.
# Exit code: 0 pass; 1 too slow, wrong results, wrong transport, or missing ranks; 2 no result to judge.
set -euo pipefail

log=$1

# Prints `SIZE BUSBW LOWER WRONG ENDED HOSTS LARGEST TRANSPORT`, and in a second line which ranks are missing:
#   SIZE       bytes of the largest message; 0 without a result
#   BUSBW      its bus bandwidth in GB/s, the better of out of place and in place; of several runs the slowest (or nan, inf)
#   LOWER      the worse of both
#   WRONG      wrong values in all rows
#   ENDED      1 if every test printed its last line, "Out of bounds values" (src/common.cu), and no process failed
#   HOSTS      number of nodes, from NCCL (nNodes, since 2.19) or the list of ranks; -1 unknown; 0 if ranks ran separately
#   LARGEST    bytes of the largest message in a heading or row, if too few of its rows are readable; otherwise 0
#   TRANSPORT  transport of the channels
#
# Rows (NVIDIA/nccl-tests src/util.cu, and src/common.cu before 2.17.6):
#   size count type redop root | time algbw busbw #wrong | time algbw busbw #wrong
# Before 2.13, rows have no root, and each half ends with a deviation (`error`), which the line "Out of bounds values" judges.
# Other tests have no redop (none), a rank as root (reduce), or a size of more than count values (reduce_scatter). sendrecv only has
# another name in the heading (since 2.16.9). Per-iteration reports have four more columns in each half. Timestamps are at the end.
# #wrong may be N/A.
#
# Channels (NVIDIA/nccl src/transport/{net,coll_net,p2p,shm}.cc, 2.10 to 2.29; all are printed with the subsystem INIT):
#   Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA       CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA
#   Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM                    Channel 00 : 0[0] -> 1[1] via SHM/direct/direct
# Earlier lines (`NET/Socket : Using`, `Using network Socket`) only show available networks.
# nccl-rdma-sharp-plugins calls InfiniBand IBext, IBext_v8 and so on (src/ib_plugin.c). NET/IB and NET/UCX also use Ethernet (RoCE):
# the line `NET/UCX : Using [0]mlx5_0:1/IB` shows the link layer of each device. P2P/MNNVL is NVLink between nodes.
# shellcheck disable=SC2016
readonly RESULTS='BEGIN {
  root = 1
  half = 4
  checked = 1
}

{
  gsub(/\r/, "")
  gsub(/\033\[[0-9;?]*[A-Za-z]/, "")
  sub(/^[A-Z][a-z][a-z] [A-Z][a-z][a-z] +[0-9]+ [0-9:]+ [0-9][0-9][0-9][0-9]/, "") # mpirun --timestamp-output
  gsub(/(\[[^] ]*[0-9]+,[0-9]+\])?<std[a-z]+>: ?/, "") # mpirun --tag-output
}

/ redop / {
  tables++
  root = checked = / redop +root /
  half = / i_min / ? 8 : 4
}

/Out of bounds values *: *[0-9]/ {
  sub(/.*Out of bounds values *: */, "")
  out_of_bounds += $1
  ended++
}

$0 ~ failure && $0 !~ helper { failed = 1 }

match($0, /# +(Using devices|nThread |Collective test starting)/) { headings[substr($0, RSTART, RLENGTH)]++ }
/# Collective test starting: / { named = /all_reduce/ ? "all_reduce" : "other" }

# The largest message of a run (src/common.cu, TimeTest): maxBytes, if a step reaches it.
named != "other" && match($0, /minBytes +[0-9]+ +maxBytes +[0-9]+ +step: *[0-9]+[(][a-z]+/) {
  split(substr($0, RSTART, RLENGTH), words, /[ (:]+/)
  asked++
  least_bytes[asked] = words[2] + 0
  most_bytes[asked] = words[4] + 0
  step[asked] = words[6] + 0
  by[asked] = words[7]
}
match($0, /Reducing maxBytes to +[0-9]+/) {
  split(substr($0, RSTART, RLENGTH), words, " ")
  for (i = ended + 1; i <= asked; i++) if (words[4] + 0 < most_bytes[i]) most_bytes[i] = words[4] + 0
}

{
  process = "" # its host
  if (match($0, /[A-Za-z0-9][A-Za-z0-9._-]*:[0-9]+:[0-9]+ \[[0-9]+\] NCCL /)) {
    process = substr($0, RSTART, index(substr($0, RSTART), ":") - 1)
    if (!(process in known)) hosts++
    known[process] = 1
  }
}
/NET\/(IB|UCX)[^ ]* : Using / {
  for (rest = $0; match(rest, /\[[0-9]+\](=\{\[[0-9]+\])? ?[^ ]*\/(IB|RoCE)/); rest = substr(rest, RSTART + RLENGTH)) {
    device = substr(rest, RSTART + 1, RLENGTH - 1)
    kind = device ~ /RoCE$/ ? "RoCE" : "IB"
    device = substr(device, 1, index(device, "]") - 1)
    layer[process, device, kind] = layer["", device, kind] = has[process, kind] = 1
  }
}

# Without MPI, each process lists itself as Rank 0; with one mpirun per node, each node lists its own Rank 0.
match($0, / n[Rr]anks [0-9]+/) { if (substr($0, RSTART + 8) + 0 > most) most = substr($0, RSTART + 8) + 0 }
!/MNNVL [1-9]/ && match($0, / localRanks [0-9]+/) { on_one_node[substr($0, RSTART + 12) + 0] = 1 }
match($0, /-np +[0-9]+ /) { processes = substr($0, RSTART + 3) + 0 }
match($0, /nThread +[0-9]+ +nGpus +[0-9]+/) {
  split(substr($0, RSTART, RLENGTH), words, " +")
  gpus = words[2] * words[4] # of each process
}
!/MNNVL [1-9]/ && match($0, / nNodes [0-9]+/) { if (substr($0, RSTART + 8) + 0 > together) together = substr($0, RSTART + 8) + 0 }
/# +Using devices/ { listing++ }
/# +Rank +[0-9]/ || /device +[0-9]+ +\[/ { lines_of_ranks[listing]++ } # a line that is cut counts twice
match($0, /# +Rank +[0-9]+ .*Pid +[0-9]+ on +[^ ]+ /) {
  count = split(substr($0, RSTART, RLENGTH), words, " ")
  if (!((listing, words[count]) in listed)) nodes[listing]++
  if (!((listing, words[3]) in place)) {
    on_host[listing, words[count]]++
    whole_lines[listing]++
  }
  listed[listing, words[count]] = 1
  if ((listing, words[3]) in place && place[listing, words[3]] != words[count]) apart = 1
  place[listing, words[3]] = words[count]
}

/ via / {
  channels("\\[(send|receive)\\] via NET/IB(ext(_v[0-9]+)?)?/", "NET/IB")
  channels("via NET/Socket", "NET/Socket") # also of a line that is cut
  channels("\\[(send|receive)\\] via COLLNET/", "COLLNET")
  channels("via (SHM/|direct shared memory)", "SHM")
  channels("via P2P/MNNVL", "P2P/MNNVL")
  channels("via P2P/", "P2P")
  if (match($0, /via NET\/[A-Za-z0-9_ ]+\//) && $0 !~ /via NET\/(IB|Socket)/) other = substr($0, RSTART + 4, RLENGTH - 5)
  if (match($0, /via NET\/(IB|UCX)[^ \/]*\/[0-9]+/)) {
    device = substr($0, RSTART, RLENGTH)
    sub(/.*\//, "", device)
    network = used[process SUBSEP device] = 1
  }
}

/NCCL INFO NVLS comm / { seen["NVLS"] = 1 }

# Ranks write at the same time: a row may be inside another line, and lines of NCCL inside a row.
{
  rest = $0
  sub(/[A-Za-z][^ ]*:[0-9]+:[0-9]+ \[[0-9]+\] .*NCCL .*/, "", rest)
  if (row($0) || row(begun rest)) begun = ""
  else if (match(rest, /[0-9]+ +[0-9]+ +[a-z]/)) begun = substr(rest, RSTART)
  else if (begun != "" && rest != $0) begun = begun rest
}

END {
  if (!wrong) wrong = out_of_bounds
  for (device in used) {
    if (!((device, "IB") in layer || (device, "RoCE") in layer)) sub(/^[^\034]*/, "", device) # a line may be cut: of any host
    if ((device, "RoCE") in layer) ethernet = 1
    else if ((device, "IB") in layer) infiniband = 1
  }
  for (name in known) if (network && (name, "RoCE") in has && !((name, "IB") in has)) ethernet = 1 # all that this host can use
  transport = "none"
  for (i = split("SHM P2P NVLS", names, " "); i > 0; i--) if (names[i] in seen) transport = names[i]
  if ("P2P/MNNVL" in seen) transport = "P2P/MNNVL"
  for (i = split("NET/IB COLLNET", names, " "); i > 0; i--) if (names[i] in seen) transport = names[i]
  if (other != "") transport = other == "NET/UCX" && infiniband ? "NET/UCX/IB" : other
  if ("NET/Socket" in seen) transport = "NET/Socket"
  if (ethernet && transport != "NET/Socket") transport = "RoCE"
  least = -1
  for (i in nodes) {
    listings++
    if (least < 0 || nodes[i] < least) least = nodes[i]
  }
  if (apart || most == 1 || (least == 1 && listings > 1)) least = 0
  else if (together) least = together
  else if (least > 1 && hosts > least) least = hosts # a line of the list may be cut
  complete = ended && !failed && ended >= tables
  for (i in headings) if (headings[i] > ended) complete = 0
  if (size >= largest) largest = 0 # a row that could not be read
  for (i = 1; i <= asked; i++) {
    last = last_size(least_bytes[i], most_bytes[i], step[i], by[i])
    if (++runs[last] > results(last) && last > largest) largest = last
  }
  printf "%.0f %s %.2f %.0f %d %d %.0f %s\n", size, size ? busbw : 0, lower, wrong, complete, least, largest, transport
  print ranks_lacking()
}

# Compares the ranks in the list and in lines of NCCL with the nodes and GPUs of the job, or with each other.
function ranks_lacking(i, of, expected, shown, sizes) {
  expected = ENVIRON["NODES"] * ENVIRON["GPUS_PER_NODE"]
  if (processes * gpus > expected) expected = processes * gpus
  if (most > expected) expected = most
  shown = most > 1 ? most : 0
  for (i in lines_of_ranks) if (hosts <= nodes[i] && (!shown || lines_of_ranks[i] < shown)) shown = lines_of_ranks[i]
  if (!shown) return ENVIRON["GPUS_PER_NODE"] ? "no log line shows how many ranks took part" : ""
  if (shown < expected) return shown " ranks of " expected " took part"
  for (i in on_host) {
    split(i, of, SUBSEP)
    if (lines_of_ranks[of[1]] == whole_lines[of[1]]) on_one_node[on_host[i]] = 1
  }
  for (i in on_one_node) sizes++
  if (sizes > 1 || shown % ENVIRON["NODES"]) return "the nodes have different numbers of ranks, " shown " in total"
}

function last_size(from, to, by, unit) {
  if (by < 1 || from < 1 || from > to) return to
  if (unit ~ /^bytes/) return from + int((to - from) / by) * by
  while (by > 1 && from * by <= to) from *= by
  return from
}

# Counts the rows of this size, which is rounded down to values of the type, or to 16 bytes.
function results(bytes, count, i) {
  for (i = 0; i < 16; i++) count += rows[sprintf("%.0f", bytes - i)]
  return count
}

function channels(pattern, name) {
  if ($0 ~ pattern) seen[name] = 1
}

function number(text) {
  return text ~ /^[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$/
}

function width(type) {
  return type ~ /^(u?int8|char|f(loat|p)?8.*)$/ ? 1 : type ~ /half|16/ ? 2 : type ~ /double|64/ ? 8 : 4
}

function no_number(text) {
  return text ~ /^[-+]?(nan|inf|NaN|Inf)$/ || text == "N/A"
}

# Whether a half (time algbw busbw #wrong) begins at words[at].
function measured(words, at, i) {
  for (i = 0; i < 4; i++) if (!number(words[at + i]) && !no_number(words[at + i])) return 0
  return 1
}

# Reads the row of results inside the line. Returns whether the line has one.
function row(line, words, count, i, first, second, better, worse) {
  count = split(line, words, " ")
  for (i = 1; i <= count; i++) {
    first = i + 4 + root
    second = first + half
    if (words[i] !~ /^[0-9]+$/ || words[i + 1] !~ /^[0-9]+$/ || words[i + 2] !~ /^[a-z][a-z0-9_]*$/) continue
    if (root && words[i + 4] !~ /^-?[0-9]+$/) continue
    if (named == "other" || words[i + 3] == "none") continue # of another collective
    if (!named && ((root && words[i + 4] != -1) || words[i] - words[i + 1] * width(words[i + 2]) >= width(words[i + 2]))) continue
    if (words[i] + 0 > largest) largest = words[i] + 0
    if (!measured(words, first) || !measured(words, second)) continue
    if (checked) wrong += words[first + 3] + words[second + 3]
    better = words[first + 2] + 0 > words[second + 2] + 0 ? words[first + 2] : words[second + 2]
    if (no_number(words[first + 2])) better = words[first + 2]
    if (no_number(words[second + 2])) better = words[second + 2]
    worse = words[first + 2] + words[second + 2] - better
    if (words[i] + 0 > size) lower = worse
    else if (words[i] + 0 == size && worse < lower) lower = worse
    if (words[i] + 0 > size || (words[i] + 0 == size && number(busbw) && (no_number(better) || better + 0 < busbw + 0))) {
      size = words[i] + 0
      busbw = better
    }
    rows[words[i]]++
    return 1
  }
  return 0
}'

# Messages of nccl-tests, mpirun (Open MPI, PRRTE, MPICH), srun and torchrun about a failed process, even after its results.
names="Killed|Aborted|Terminated|Hangup|Bus error|Illegal instruction|Floating point exception"
abort="exited on$|non-zero (status|exit code)|exit code [1-9]|sending signal [A-Z]+ to command|MPI_ABORT was invoked|BAD TERMINATION|Segmentation fault|lost communication with"
abort+="|srun: error: .* task|CANCELLED AT|ChildFailedError|core dumped|dumped core|terminate called|(^|[ :])($names)( *$|  )|: line [0-9]+: +[0-9]+ +[A-Z]"
abort+="|Process received signal|[Cc]aught signal [0-9]|Abort[(][0-9]+[)]|An error occurred in MPI_|Fatal error|double free|corrupted (size|double|unsorted)"
abort+="|(free|alloc|consolidate|munmap_chunk)[(][)]: |stack smashing|buffer overflow detected|oom[-_]kill|OOMKilled|[Oo]ut of memory"
abort+="|CUDA error: |illegal memory access|NVRM: Xid"
# Messages of bash about other programs that the script around the test has ended.
helper="(: line [0-9]+: +[0-9]+|[[][0-9]+[]][+-]?) +(Terminated|Killed|Hangup) +[(]? ?(sleep|tail|tee|cat|watch|top|vmstat|iostat|nvidia-smi|dcgmi|[^ ]*sshd)( |&|$)"
# Messages of NCCL (src/transport/net_ib, src/misc/ibvwrap.cc) about a failed link, device or transfer, which it may survive.
link="async (fatal )?event.*(error|fatal|violation)|Got completion (from|with)|ibv_modify_qp failed"
failure="Test (CUDA|NCCL) failure|exited on signal|$abort"
{
  read -r size busbw lower wrong ended hosts largest transport
  read -r lacking
} < <(LC_ALL=C awk -v failure="$failure" -v helper="$helper" "$RESULTS" "$log")

verdict() {
  local code=$1 text=$2 numbers=""
  if ((size > 0)); then
    numbers="; busbw=$busbw GB/s floor=$BUSBW_FLOOR_GBS GB/s${BUSBW_EXPECTED_GBS:+ expected=$BUSBW_EXPECTED_GBS GB/s}"
    numbers+=" size=$size B nodes=$NODES transport=$transport"
  fi
  echo "VERDICT: $text$numbers"
  exit "$code"
}

# Prints the first error of the shell, MPI or NCCL in the log.
cause() {
  local words="error while loading shared libraries: [^ ]*|(mpirun|mpiexec|orted|prted|all_reduce_perf)['\"]?: (command )?not found"
  words+="|not enough slots available|(ORTE|PRTE|PMIx) [^.]*|ssh: .*|Host key verification failed|Permission denied \(publickey[^ ]*"
  words+="|Invalid number of GPUs: .*|NCCL WARN .*|Test (CUDA|NCCL) failure [^']*'.*|exited on signal .*|.*($abort).*"
  words=$(tr -d '\r' <"$log" | LC_ALL=C grep -a -m1 -oE "$words" | head -n 1 | cut -c1-300 || true)
  echo "${words:+: $words}"
}

((size > 0)) || verdict 2 "FAIL no all_reduce_perf result in the output$(cause)"
[[ $wrong == 0 ]] || verdict 1 "FAIL $wrong wrong values in the results"
if ((hosts == 0)) && { ((NODES > 1)) || [[ $busbw == 0.00 ]]; }; then
  verdict 1 "FAIL the ranks did not find each other: built without MPI=1, or started by the mpirun of another MPI"
fi
broken=$(tr -d '\r' <"$log" | LC_ALL=C grep -a -m1 -E "$link" | head -n 1 | cut -c1-300 || true)
[[ -z $broken ]] || verdict 1 "FAIL InfiniBand failed during the test: $broken"
((ended)) || verdict 2 "FAIL all_reduce_perf did not finish$(cause)"
((largest == 0)) || verdict 2 "FAIL the largest message, $largest B, has no readable result"
[[ $busbw =~ ^[0-9] ]] || verdict 2 "FAIL all_reduce_perf measured no bandwidth: $busbw"
if ((NODES > 1)); then
  ((hosts != 1)) || verdict 1 "FAIL all ranks were on one node of $NODES"
  ((hosts < 0 || hosts >= NODES)) || verdict 1 "FAIL the ranks were on $hosts nodes of $NODES"
  case $transport in
    NET/IB | COLLNET | NET/UCX/IB | P2P/MNNVL) ;;
    NET/Socket) verdict 1 "FAIL NCCL fell back to TCP (NET/Socket) between nodes" ;;
    RoCE) verdict 1 "FAIL NCCL used Ethernet (RoCE) between nodes" ;;
    *)
      [[ $transport != NET/* ]] || by=", but $transport"
      verdict 1 "FAIL no channel shows that NCCL used InfiniBand${by:-} (via NET/IB or COLLNET; is NCCL_DEBUG=INFO set?)"
      ;;
  esac
fi
[[ -z $lacking ]] || verdict 1 "FAIL not all GPUs took part: $lacking"
reached() { awk -v busbw="$busbw" -v floor="$BUSBW_FLOOR_GBS" 'BEGIN { exit !(busbw >= floor) }'; }
reached || verdict 1 "FAIL bus bandwidth is below the floor of this VM size and node count"
better=$busbw busbw=$lower
reached || verdict 1 "FAIL bus bandwidth is below the floor of this VM size and node count either out of place or in place; the other is $better GB/s"
busbw=$better
verdict 0 "PASS"
