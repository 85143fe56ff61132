#!/usr/bin/env bash
# The slowest integration tests with their seconds, slowest first: `bash tests/slow.sh [HOW MANY [FILTER]]`. Tests wait for
# the machine's lock and for a processor, so that one alone takes less.
set -euo pipefail
cd "$(dirname "$0")/.."
built=$(cargo test --test it --no-run --message-format=json)
program=$(sed -nE 's/.*"executable":"([^"]*\/it-[^"]*)".*/\1/p' <<<"$built" | tail -1)
# Times of tests are an unstable option of the harness; this variable allows it where the compiler is a stable one.
RUSTC_BOOTSTRAP=1 "$program" -Z unstable-options --report-time "${@:2}" |
    sed -nE 's/^test (.*) \.\.\. (.*) <([0-9.]+)s>$/\3 \1 \2/p' | sort -rn | head -n "${1:-40}"
