#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Finds errors of GPUs (Xids) or NVSwitches (SXids) in the log of NVIDIA's drivers, by severity. Critical errors are
# valid until the next boot; warnings, most caused by a job, for an hour. Compressed logs are not read; AKS compresses
# them after one or two days (Azure/AgentBaker, parts/linux/cloud-init/artifacts/aks-rsyslog).
# Usage: gpu-xid.sh critical|warning
here=$(dirname "$0")
source "$here/lib.sh"
source "$here/log.sh"

severity=$1
[[ $severity == critical || $severity == warning ]] || unknown "unknown severity $severity; allowed: critical, warning"
declare -A critical=()
while read -r number _; do
  [[ $number == [0-9]* ]] && critical[$number]=1
done <"$here/xids.txt"

# Prints the severity of an Xid. For 144 to 150, the word in the text decides ("NETIR_LINK_EVT Fatal XC0 ...", NVIDIA's
# Xid catalog). An Xid 45 that one of these caused lacks the word, so it is a warning.
severity_of() {
  local number=$1 text=$2
  if ((number >= 144 && number <= 150)); then
    [[ $text =~ [Nn]on-?[Ff]atal|caused\ by\ previous ]] && echo warning || echo critical
  else
    [[ -z ${critical[$number]:-} ]] && echo warning || echo critical
  fi
}

# Records a GPU's recovery action (Xid 154) by its number, for which drivers use different words (nvml.h,
# nvmlDeviceGpuRecoveryAction_t): 0 none, 1 reset, 2 reboot, 3 drain, 4 drain and reset. An IMEX domain that has to be
# recovered is not the GPU's own. An action is valid until the GPU's next Xid 154; that of an unknown one until the
# boot.
declare -A action=() seen=()
recovery() {
  local gpu=$1 text=$2
  if [[ ! $text =~ to\ 0x0*([0-9a-f]+)(.*) ]]; then
    action[$gpu]="critical unknown"
    return
  fi
  case ${BASH_REMATCH[1]} in
    0) [[ $gpu == unknown ]] || unset "action[$gpu]" ;;
    3 | 4) action[$gpu]="warning ${BASH_REMATCH[1]}${BASH_REMATCH[2]}" ;;
    *) action[$gpu]="$([[ ${BASH_REMATCH[2]} == *IMEX* ]] && echo warning || echo critical) ${BASH_REMATCH[1]}${BASH_REMATCH[2]}" ;;
  esac
}

# The driver's messages without an Xid. It cannot start a GPU that is broken or still used by another driver, and
# retries.
readonly LOST='fallen off the bus|lost from the bus|NV_ERR_GPU_IS_LOST'
readonly NOT_STARTED='RmInitAdapter failed!|NV_ERR_GPU_IN_FULLCHIP_RESET'
readonly RESET='[Rr]eset required|NV_ERR_RESET_REQUIRED|[Rr]equires reset|need to be reset'

note() { # SEVERITY TEXT
  [[ $1 != "$severity" ]] || seen["$2"]=1
}

entry() { # LINE
  local line=$1 gpu=unknown number text
  if [[ ${line#*NVRM:} =~ (^|[^0-9A-Fa-f])(0000)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}) ]]; then
    gpu=${BASH_REMATCH[3],,}
  fi
  if [[ $line =~ NVRM:\ Xid\ \([^\)]*\):\ 0*([0-9]+)(.*) ]]; then
    number=${BASH_REMATCH[1]} text=${BASH_REMATCH[2]}
    if ((number == 154)); then
      recovery "$gpu" "$text"
      return
    fi
    [[ ! $text =~ caused\ by\ previous\ Xid\ ([0-9]+) ]] || number=${BASH_REMATCH[1]}
    note "$(severity_of "$number" "$text")" "$number of GPU $gpu"
  elif [[ $line =~ SXid\ \(PCI:([^\)]*)\):\ 0*([0-9]+),?\ *(.*) ]]; then
    gpu=${BASH_REMATCH[1]%.0} number=${BASH_REMATCH[2]} text=${BASH_REMATCH[3]}
    # Lines below an error have its data.
    [[ $text =~ ^(Severity|Data|Engine)\  ]] && return
    if [[ $text =~ [Ff]atal && ! $text =~ [Nn]on-?[Ff]atal ]]; then
      note critical "S$number of NVSwitch $gpu"
    else
      note warning "S$number of NVSwitch $gpu"
    fi
  elif [[ $line =~ NVSwitch\ (non-)?fatal\ error\ ([0-9]+).*pci\ bus\ id\ ([0-9A-Fa-f:]+) ]]; then # the fabric manager
    note "$([[ ${BASH_REMATCH[1]} ]] && echo warning || echo critical)" "S${BASH_REMATCH[2]} of NVSwitch ${BASH_REMATCH[3]}"
  elif [[ $line =~ NVRM:.*($LOST|$NOT_STARTED) ]]; then # drivers do not always log an Xid
    number=79
    [[ $line =~ $LOST ]] || number="without number (the driver cannot start it)"
    note "$([[ $number == 79 ]] && echo critical || echo warning)" "$number of GPU $gpu"
  elif [[ $severity == critical && $line =~ NVRM:.*($RESET) ]]; then
    action[$gpu]="critical (Reset required)"
  fi
}

# A job may print such words: only lines of the kernel and the fabric manager count.
readonly ERRORS="$KERNEL(NVRM: Xid \\(|(nvidia-)?nvswitch[0-9]*:? SXid \\(|NVRM:.*($LOST|$NOT_STARTED|$RESET))|fabric-?manager.*NVSwitch (non-)?fatal error"
entries "$ERRORS" 0
for line in "${entries[@]}"; do
  # A recovery action is valid however old it is: warnings need older Xids 154, too.
  [[ $severity == critical || $line == *": 154, "* ]] && entry "$line"
done
if [[ $severity == warning ]]; then
  entries "$ERRORS" 1
  for line in "${entries[@]}"; do
    [[ $line == *": 154, "* ]] || entry "$line"
  done
fi
for gpu in "${!action[@]}"; do
  note "${action[$gpu]%% *}" "154 of GPU $gpu: recovery action ${action[$gpu]#* }"
done
((${#seen[@]})) || ok "no Xid that is $severity"
found=$(printf '%s\n' "${!seen[@]}" | sort -n | paste -sd ';' -)
problem "Xid ${found//;/, }"
