#!/usr/bin/env bash
# Reports the results in the next file answer.N, with lines `<check>|<failure>` or `<check>|+<success>`; other checks pass.
for word in "$@"; do [[ $word != CONFFILE=* && $word != LOGFILE=* ]] || declare "${word%%=*}=${word#*=}"; done
shopt -s nullglob
before=("$HERE"/ran.*)
run=${#before[@]}
cp "$CONFFILE" "$HERE/ran.$run"
sed -n 's/^ *\* || //p' "$CONFFILE" | while read -r check; do
  echo "Running check:  \"$check\"" >>"$LOGFILE"
  sed -n "s/^${check%% *}|+/SUCCESS:  nhc:  Health check passed:  /p" "$HERE/answer.$run" >>"$LOGFILE"
  failure=$(sed -n "s/^${check%% *}|\([^+]\)/\1/p" "$HERE/answer.$run")
  [[ -z $failure ]] || echo "ERROR:  nhc:  Health check failed:  $failure" >>"$LOGFILE"
done
failed=$(grep -c "Health check failed" "$LOGFILE")
((failed)) && echo "ERROR:  nhc:  $failed health checks failed." >>"$LOGFILE"
((failed)) || echo "Node Health Check completed successfully (9s)." >>"$LOGFILE"
