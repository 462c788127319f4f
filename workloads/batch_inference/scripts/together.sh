# shellcheck shell=bash disable=SC2034,SC2154 # `me`, `other` and `left_alone` are shared with who sources it
# For two containers of a pod that end together, whatever ends one of them. Sourced, with `me` and `other` set to their
# names; reads TOGETHER, a folder of both. Each touches a file of its name there every second, and leaves another as it
# ends. One that is killed leaves none, and shows by its silence.

silence_s=60
stop_s=30 # how long a command may take to stop
since=$(date +%s)
trap 'touch "$TOGETHER/$me.ended"' EXIT

# Whether the other container's script has ended, was killed, or has not begun for too long.
other_ended() {
  [[ ! -e $TOGETHER/$other.ended ]] || return 0
  local seen
  seen=$(stat -c %Y "$TOGETHER/$other" 2>/dev/null || echo "$since")
  (($(date +%s) - seen > silence_s))
}

# beside COMMAND...: runs it to its end, and returns its exit code. It is told to stop when this container is, or when the
# other has ended: then `left_alone` is true.
beside() {
  local child code=0 waited
  "$@" &
  child=$!
  trap 'kill -TERM '"$child"' 2>/dev/null || true' TERM
  left_alone=false
  while kill -0 "$child" 2>/dev/null; do
    touch "$TOGETHER/$me"
    if other_ended; then
      left_alone=true
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
