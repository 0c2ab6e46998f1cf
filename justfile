# The table of contents. Every recipe is one command; what takes more is in scripts/.

# This list.
default:
    @just --list

# The gateway with the demo agent (or any other arguments of `plexus`).
run *ARGS="serve -c config/demo.toml":
    cargo run --locked -- {{ARGS}}

# After each change: format, clippy, unit and property tests, the house rules. About a minute, and no npm.
quick:
    ./scripts/quick

# Clippy and unit tests at each change of a file.
watch:
    ./scripts/watch

# One file of tests (`just story story_crash`), or the tests with a word in their names.
story NAME *ARGS:
    ./scripts/test {{NAME}} {{ARGS}}

# The tests with real agents, real clients and a real browser.
agents *ARGS:
    ./scripts/test --test real {{ARGS}}

# All tests; installs what they need. Arguments choose some.
test *ARGS:
    ./scripts/test {{ARGS}}

# The gateway and the real servers that it is attached to, each killed ROUNDS times at random moments.
kills ROUNDS="50":
    PLEXUS_KILLS={{ROUNDS}} ./scripts/test --test real --test stories either_side

# What CI runs, with every round of the long tests; says first what runs in full.
full:
    PLEXUS_ROUNDS=full bash .ci/run

# The table of docs/performance.md, measured here and now.
bench *ARGS:
    cargo bench --locked --bench gateway -- {{ARGS}}

# Everything at once against the release binary, for MINUTES: kills, deletes, retention, steps of the clock.
soak MINUTES="30":
    ./scripts/soak {{MINUTES}}

# The page's bundle, from its source.
web:
    ./scripts/web build

# Pictures of every screen, in both sizes and themes.
screens *ARGS:
    ./scripts/screens {{ARGS}}

# Format the source in place.
fmt:
    cargo fmt --all

# Clippy; a warning fails.
lint:
    ./scripts/lint

# API documentation; a warning fails.
docs:
    ./scripts/docs

# Licences, sources and bans of the dependencies.
policy:
    ./scripts/policy

# What deploy/ holds, as far as this machine can check it.
check-deploy:
    ./scripts/check-deploy

# What CI runs.
ci:
    bash .ci/run
