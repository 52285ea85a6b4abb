# Sourced by scripts that run several parts and account for each: "part NAME
# COMMAND..." runs one with its output shown and kept, "report" prints how long
# each took and, for those that failed, their last lines and which tests have failed.
#
# "once NAME COMMAND..." is a part that is not run again where it has passed: in
# $PARTS_KEEP, a folder for what is tested, the logs of those parts are kept. Without
# $PARTS_KEEP it is like "part".

parts_log=${PARTS_LOG:-.test}
mkdir -p "$parts_log" ${PARTS_KEEP:+"$PARTS_KEEP"}
parts_table=()
parts_failed=()

part() {
  local name=$1 start=$SECONDS result=ok
  shift
  echo "=== $name: $*"
  "$@" 2>&1 | tee "$parts_log/$name.log" || result=FAILED
  row "$name" $((SECONDS - start)) $result
  [ $result = ok ] && return
  parts_failed+=("$name")
  return 1
}

once() {
  local name=$1 start=$SECONDS
  if passed "$name"; then
    echo "=== $name: passed before"
    cp "$PARTS_KEEP/$name.log" "$parts_log/$name.log"
    row "$name" "$(cat "$PARTS_KEEP/$name")" "ok, before"
    return
  fi
  part "$@" || return
  [ -n "${PARTS_KEEP:-}" ] || return 0
  # The second file says that the first is whole.
  cp "$parts_log/$name.log" "$PARTS_KEEP/$name.log" && echo $((SECONDS - start)) >"$PARTS_KEEP/$name"
}

# passed reports whether a part has passed before.
passed() { [ -n "${PARTS_KEEP:-}" ] && [ -s "$PARTS_KEEP/$1" ]; }

# skipped accounts for parts that could not be run.
skipped() {
  local name
  for name; do row "$name" 0 "not run"; done
}

row() { parts_table+=("$(printf '%-28s %5ds  %s' "$1" "$2" "$3")"); }

# failures prints which tests have failed by the log of "go test", each with the first and
# the last lines that it logged: a log ends with those of the processes that a test ran.
# What a report within the log says again is left out.
failures() {
  awk '
    function flush(i) {
      for (i = 0; i < n; i++) if (i < 4 || i >= n - 8) print lines[i]; else if (i == 4) print "    [...]"
      n = 0
    }
    /^=== the end of / { flush(); inner = 1 }
    /^=== .*: how long each part took$/ { inner = 0 }
    inner { next }
    /^ *--- FAIL: / { flush(); print; next }
    /^ *--- (PASS|SKIP): / { n = 0; next }
    /^(panic|fatal error): |^WARNING: DATA RACE/ { flush(); print; next }
    /^\t+(running tests:|(Test|Fuzz|Example)[^ ]* \([0-9.hmsµ]+\)$)|^FAIL\t.*\[(build|setup) failed\]/ { flush(); print; next }
    /^ +[A-Za-z0-9_]+\.go:[0-9]+: / { lines[n++] = substr($0, 1, 400) }
    END { flush() }' "$1"
}

report() {
  local name
  for name in "${parts_failed[@]}"; do
    echo "=== the end of $parts_log/$name.log"
    tail -n 40 "$parts_log/$name.log"
  done
  for name in "${parts_failed[@]}"; do
    echo "=== tests that failed in $name"
    failures "$parts_log/$name.log"
  done
  echo "=== $1: how long each part took"
  printf '%s\n' "${parts_table[@]}"
  [ ${#parts_failed[@]} -eq 0 ]
}
