# Sourced by scripts that run several parts and account for each: "part NAME
# COMMAND..." runs one with its output shown and kept, "report" prints how long
# each took and, for those that failed, their last lines.

parts_log=${PARTS_LOG:-.test}
mkdir -p "$parts_log"
parts_table=()
parts_failed=()

part() {
  local name=$1 start=$SECONDS result=ok
  shift
  echo "=== $name: $*"
  "$@" 2>&1 | tee "$parts_log/$name.log" || result=FAILED
  parts_table+=("$(printf '%-28s %5ds  %s' "$name" $((SECONDS - start)) $result)")
  [ $result = ok ] && return
  parts_failed+=("$name")
  return 1
}

report() {
  local name
  for name in "${parts_failed[@]}"; do
    echo "=== the end of $parts_log/$name.log"
    tail -n 40 "$parts_log/$name.log"
  done
  echo "=== $1: how long each part took"
  printf '%s\n' "${parts_table[@]}"
  [ ${#parts_failed[@]} -eq 0 ]
}
