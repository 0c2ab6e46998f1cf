#!/bin/sh
# Installs one agent of PyPI (`install.sh vibe`, `install.sh kimi`) into a venv, once per list of what it is made of, and prints
# the venv as the last line of stdout. It is under $PLEXUS_TEST_CACHE (default: target/agents of this repository), beside
# the other agents. They need Python 3.13: where there is none it says so and exits with 3, and nothing was installed.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${PLEXUS_TEST_CACHE:-$here/../../../target/agents}
agent=$1

fail() {
    echo "tests/agents/python/install.sh: $*" >&2
    exit 1
}

[ -f "$here/$agent.txt" ] || fail "there is no list $agent.txt"

# Kimi's own code does not start on 3.12.1.
python=
for candidate in python3.13 python3 "$HOME"/.pyenv/versions/3.13*/bin/python3 /usr/local/bin/python3.13; do
    found=$(command -v "$candidate" 2>/dev/null) || continue
    if "$found" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null; then
        python=$found
        break
    fi
done
if [ -z "$python" ]; then
    echo "no Python 3.13 with venv was found" >&2
    exit 3
fi

key=$("$python" -c '
import hashlib, sys, sysconfig
pinned = hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest()[:16]
print(f"{sys.argv[2]}-{pinned}-{sys.version_info[0]}.{sys.version_info[1]}-{sysconfig.get_platform()}")
' "$here/$agent.txt" "$agent")
mkdir -p "$cache"
# A venv cannot be moved, so it is made where it stays, and is complete when it says so.
dir=$(cd "$cache" && pwd)/$key
if command -v flock >/dev/null 2>&1; then
    exec 9>"$dir.lock"
    flock 9
fi
if [ ! -f "$dir/.complete" ]; then
    rm -rf "$dir"
    "$python" -m venv "$dir" >&2 || fail "python -m venv failed; its words are above"
    "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$here/$agent.txt" >&2 ||
        fail "pip install failed; its words are above"
    : >"$dir/.complete"
fi
echo "$dir"
