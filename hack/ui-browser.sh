#!/bin/bash
# "make ui-browser" and "make ui-pictures": tests the page of "kubectl registry ui" in a
# browser, or takes its pictures for the docs there. $CHROMIUM is the browser's program.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v "${CHROMIUM:=chromium}" >/dev/null; then
  if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "there is no $CHROMIUM: install Chromium, or set CHROMIUM to the program of a browser that is made of it" >&2
    exit 1
  fi
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "$CHROMIUM" fonts-dejavu-core >/dev/null
fi
CHROMIUM=$(command -v "$CHROMIUM")
export CHROMIUM
${GO:-go} build -o bin/ui-site ./cli/ui/browser/site
cd cli/ui/browser
exec npm run --silent "$1"
