#!/usr/bin/env bash
# Builds the wheel of this checkout into a folder: `bash packaging/wheel.sh [FOLDER [PROFILE]]`, by default dist/ and the
# profile of releases. Needs cargo, a C compiler, and Python with venv and pip.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-dist}
profile=${2:-dist}
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
# Equal functions are folded where the linker can (lld, the default of rustup's toolchains on x86-64): 3 % less.
fold=
if [ "$profile" = dist ]; then
    fold=-Clink-arg=-Wl,--icf=all
    echo 'fn main() {}' | rustc "$fold" -o "$tools/probe" - 2>"$tools/said" || fold=
fi
"$tools/bin/maturin" build --profile "$profile" --locked --out "$folder" -- $fold
