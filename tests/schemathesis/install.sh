#!/bin/sh
# Installs the pinned schemathesis into a venv, once per requirements.txt, and prints the venv as the last line of stdout.
# It is under $PLEXUS_TEST_CACHE (default: target/agents of this repository), beside the agents and clients.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${PLEXUS_TEST_CACHE:-$here/../../target/agents}

fail() {
    echo "tests/schemathesis/install.sh: $*" >&2
    exit 1
}

command -v python3 >/dev/null 2>&1 || fail "python3 is not on PATH; it is needed, with venv (Debian: apt-get install python3-venv)"
key=$(python3 -c '
import hashlib, sys, sysconfig
pinned = hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest()[:16]
print(f"schemathesis-{pinned}-{sys.version_info[0]}.{sys.version_info[1]}-{sysconfig.get_platform()}")
' "$here/requirements.txt")
mkdir -p "$cache"
# A venv cannot be moved, so it is made where it stays, and is complete when it says so.
dir=$(cd "$cache" && pwd)/$key
if command -v flock >/dev/null 2>&1; then
    exec 9>"$dir.lock"
    flock 9
fi
if [ ! -f "$dir/.complete" ]; then
    rm -rf "$dir"
    python3 -m venv "$dir" >&2 || fail "python3 -m venv failed; its words are above"
    "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt" >&2 ||
        fail "pip install failed; its words are above"
    : >"$dir/.complete"
fi
echo "$dir"
