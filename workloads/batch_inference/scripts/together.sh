# shellcheck shell=bash disable=SC2034,SC2154 # the sourcing script shares `me`, `other` and `other_has_ended`
# Makes two containers of a pod end together. Both scripts source it, with `me` and `other` set to the containers' names. In
# TOGETHER, a folder of both, each touches a file with its name every second, and creates another when it ends. A killed container
# creates none; its file just becomes old.

silence_s=60
stop_s=30 # time for a command to stop
since=$(date +%s)
trap 'touch "$TOGETHER/$me.ended"' EXIT

# Returns whether the other container's script has ended, was killed, or did not start in time.
other_ended() {
  [[ ! -e $TOGETHER/$other.ended ]] || return 0
  local seen
  seen=$(stat -c %Y "$TOGETHER/$other" 2>/dev/null || echo "$since")
  (($(date +%s) - seen > silence_s))
}

# run_while_other_runs COMMAND...: runs a command and returns its exit code. Stops it if this container must stop, or if the other
# has ended; then `other_has_ended` is true.
run_while_other_runs() {
  local child code=0 waited
  "$@" &
  child=$!
  trap 'kill -TERM '"$child"' 2>/dev/null || true' TERM
  other_has_ended=false
  while kill -0 "$child" 2>/dev/null; do
    touch "$TOGETHER/$me"
    if other_ended; then
      other_has_ended=true
      kill -TERM "$child" 2>/dev/null || true
      for ((waited = 0; waited < stop_s; waited++)); do
        kill -0 "$child" 2>/dev/null || break
        sleep 1
      done
      kill -KILL "$child" 2>/dev/null || true
    fi
    sleep 1
  done
  wait "$child" || code=$?
  return "$code"
}
