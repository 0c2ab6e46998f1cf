#!/bin/sh
# Installs the pinned real agents, or what another folder's lock file pins (`install.sh tests/clients`), once per lock file,
# and prints the directory they are in as the last line of stdout.
# The directory is under $PLEXUS_TEST_CACHE (default: target/agents of this repository), so that several clones can share one.
# Without network it works as soon as the directory has been filled once.
set -eu

repo=$(cd "$(dirname "$0")/../.." && pwd)
here=$(cd "${1:-$repo/tests/agents}" && pwd)
cache=${PLEXUS_TEST_CACHE:-$repo/target/agents}

fail() {
    echo "tests/agents/install.sh: $*" >&2
    exit 1
}

missing=
for tool in node npm; do
    command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
done
[ -z "$missing" ] ||
    fail "not on PATH:$missing; the agents are npm packages and need Node.js 20 or newer with npm (Debian: apt-get install nodejs npm)"
node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' ||
    fail "node $(node --version) is too old; Gemini CLI needs Node.js 20 or newer"

# The packages hold native programs, so the platform is part of the key.
key=$(node -e '
    const lock = require("fs").readFileSync(process.argv[1]);
    const hash = require("crypto").createHash("sha256").update(lock).digest("hex").slice(0, 16);
    console.log(`${hash}-${process.platform}-${process.arch}`);
' "$here/package-lock.json")
mkdir -p "$cache"
dir=$(cd "$cache" && pwd)/$key

done_already() {
    [ -f "$dir/.complete" ]
}
if done_already; then
    echo "packages of $(basename "$here"): already installed"
    echo "$dir"
    exit 0
fi

# The lock only spares two callers the same download; what makes this safe is the rename at the end.
if command -v flock >/dev/null 2>&1; then
    exec 9>"$cache/$key.lock"
    flock 9
    if done_already; then
        echo "packages of $(basename "$here"): installed meanwhile by another caller"
        echo "$dir"
        exit 0
    fi
fi

echo "installing $(node -p 'Object.entries(require(process.argv[1]).dependencies).map(([n, v]) => n + "@" + v).join(", ")' "$here/package.json") with npm ci (the agents are about 2.2 GB on disk)"
part=$(mktemp -d "$cache/$key.part.XXXXXX")
trap 'rm -rf "$part"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$part/"

attempt=1
# --ignore-scripts: none of these packages needs its install script to run, and most would download something.
until (cd "$part" && npm ci --ignore-scripts >&2 9>&-); do
    [ "$attempt" -lt 3 ] || fail "npm ci failed $attempt times; its output is above"
    attempt=$((attempt + 1))
    echo "npm ci failed, attempt $attempt of 3" >&2
    sleep 3
done

# Grok's program is compressed; its install script would unpack it into the home folder of each test.
for packed in "$part"/node_modules/@xai-official/grok-*/bin/*.br; do
    [ ! -f "$packed" ] || node -e '
        const { createReadStream, createWriteStream } = require("fs");
        const [, packed] = process.argv;
        const program = createWriteStream(packed.replace(/\.br$/, ""), { mode: 0o755 });
        require("stream").pipeline(createReadStream(packed), require("zlib").createBrotliDecompress(), program, (why) => { if (why) throw why; });
    ' "$packed"
done

chmod 755 "$part"
: >"$part/.complete"
# rename(2) by node: mv would move the directory INTO one that another caller has put there first.
if ! node -e 'require("fs").renameSync(process.argv[1], process.argv[2])' "$part" "$dir" 2>/dev/null; then
    done_already || fail "$dir exists but is not complete; remove it and run this again"
fi
echo "$dir"
