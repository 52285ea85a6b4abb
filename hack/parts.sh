# Sourced by scripts that run several parts and account for each: "part NAME
# COMMAND..." runs one with its output shown and kept, "report" prints how long
# each took and, for those that failed, their last lines and which tests have failed.
# hack/parts does the work.
#
# "lane WEIGHT FUNCTION" runs the parts of a function beside what follows, and "lanes" waits
# for all that run so. When the script must end, "stop_lanes" ends them.

parts_log=${PARTS_LOG:-.test}
parts_hack=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$parts_log"
parts_lanes=()
# A script that a part runs has rows of its own.
export PARTS_LOG=$parts_log PARTS_OWNER=$$ PARTS_ROWS=$parts_log/parts-$(basename "$0" .sh).jsonl
"$parts_hack/run" parts begin || exit 1
parts_program=$parts_hack/../bin/hack/parts

part() { "$parts_program" run "$@"; }

# skipped accounts for parts that could not be run.
skipped() {
  local name
  for name; do row "$name" 0 "not run"; done
}

row() { "$parts_program" row "$@"; }

lane() {
  set -m # a process group of its own
  {
    trap 'exit 143' TERM # after its part, which gets the signal as well
    PARTS_WHOLE=1 PARTS_LANE=$1 "$2"
  } </dev/null &
  set +m
  parts_lanes+=($!)
}

# lanes fails when a lane's function does.
lanes() {
  local lane status=0
  for lane in "${parts_lanes[@]}"; do wait "$lane" || status=1; done
  parts_lanes=()
  return $status
}

stop_lanes() {
  local lane
  for lane in "${parts_lanes[@]}"; do kill -TERM -- "-$lane" 2>/dev/null; done
  lanes
}

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
  local name failed
  mapfile -t failed < <(sed -n 's/.*"name":"\([^"]*\)".*"result":"FAILED.*/\1/p' "$PARTS_ROWS")
  for name in "${failed[@]}"; do
    echo "=== the end of $parts_log/$name.log"
    tail -n 40 "$parts_log/$name.log"
  done
  for name in "${failed[@]}"; do
    echo "=== tests that failed in $name"
    failures "$parts_log/$name.log"
  done
  echo "=== $1: how long each part took"
  "$parts_program" report && [ ${#failed[@]} -eq 0 ]
}
