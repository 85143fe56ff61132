#!/usr/bin/env bash
# Installs a wheel into a fresh environment, as a user does, and takes a quick look with it:
# `bash packaging/try-wheel.sh dist/perfrun-*.whl MODEL`. ONNX Runtime must be the one that pip brought.
set -euo pipefail
wheel=$(realpath "$1")
model=$(realpath "$2")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/environment"
"$place/environment/bin/pip" install --quiet --disable-pip-version-check "$wheel"
cd "$place"
"$place/environment/bin/python" -c "import perfrun.failure"
# An empty cache: nothing but the environment can bring the library.
PERFRUN_CACHE="$place/cache" "$place/environment/bin/perfrun" "$model"
library=$(find .perfrun/records -name manifest.json -exec grep -ho '"origin": *"[^"]*"' {} + | head -1)
case $library in *"Python environment"*) ;; *) echo "not pip's ONNX Runtime: $library" >&2; exit 1 ;; esac
