//! The configuration's promises: the documented file is the default, and every mistake is told with its place and fix.

use super::*;

fn around() -> ConfigContext {
    let env = [
        ("HOME", "/"),
        ("KEY", "secret"),
        ("GEMINI_API_KEY", "k"),
        ("OPENCODE_SERVER_PASSWORD", "p"),
        ("PLEXUS_WEBHOOK_SECRET", "w"),
        ("NTFY_TOKEN", "n"),
        ("TELEGRAM_TOKEN", "12:t"),
    ];
    ConfigContext {
        exe: "/opt/plexus".into(),
        cwd: "/".into(),
        env: env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
    }
}

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, "p.toml", &around()).map_err(|error| error.to_string())
}

/// Everything a configuration says, in a form that can be compared.
fn facts(config: &Config) -> String {
    format!("{config:?}")
}

const DOCUMENTED: &str = include_str!("../../config/plexus.toml");

#[test]
fn documented_file_equals_the_defaults() {
    assert_eq!(facts(&parse(DOCUMENTED).unwrap()), facts(&Config::default()));
    assert_eq!(facts(&parse("").unwrap()), facts(&Config::default()));
}

#[test]
fn documented_file_has_every_key_and_no_other() {
    // What is commented out with one `# ` and looks like a key or a table is an option without a default.
    let option = |line: &&str| {
        let word = line.split([' ', '=']).next().unwrap_or_default();
        line.starts_with("[[") || (line.contains(" = ") && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
    };
    let all: Vec<&str> =
        DOCUMENTED.lines().map(|line| line.strip_prefix("# ").filter(option).unwrap_or(line)).collect();
    // A runtime has a preset, or a dialect and the rest: read both ways.
    let without = |keys: &[&str]| {
        let keep = |line: &&&str| !keys.iter().any(|key| line.starts_with(&format!("{key} = ")));
        all.iter().filter(keep).map(|line| format!("{line}\n")).collect::<String>()
    };
    for text in [without(&["dialect", "connect"]), without(&["preset", "connect"]), without(&["preset", "command"])] {
        let config = parse(&text.replace("session = false", "session = true")).unwrap();
        assert_eq!(config.expire_after, Some(Duration::from_secs(900)));
        assert_eq!(config.runtimes.len(), 1);
        assert_eq!(config.runtimes[0].spec.env["GEMINI_API_KEY"], "k");
    }
    // Every key that the code asks for stands there: what it knows, it tells of in its error for an unknown one.
    let known = |text: &str| {
        let error = parse(text).unwrap_err();
        let (_, list) = error.split_once("known keys: ").unwrap();
        list.lines().next().unwrap().split(", ").map(str::to_owned).collect::<Vec<_>>()
    };
    let tables = [
        "",
        "[tls]\n",
        "[log]\n",
        "[retention]\n",
        "[ceilings]\n",
        "[requests]\n",
        "[limits]\n",
        "[push]\n",
        "[native]\n",
        "[[runtime]]\npreset = \"demo\"\n",
    ];
    let channels = CHANNEL_KINDS.iter().map(|kind| format!("[[push.{}]]\n", kind.name));
    let tables: Vec<String> = tables.map(str::to_owned).into_iter().chain(channels).collect();
    for key in tables.iter().flat_map(|table| known(&format!("{table}quite_unknown = 1\n"))) {
        let there = |line: &&str| {
            line.starts_with(&format!("{key} = ")) || *line == format!("[{key}]") || line.ends_with(&format!("{key}]]"))
        };
        assert!(all.iter().any(there), "{key} is not documented");
    }
}

#[test]
fn demo_file_starts_the_demo_with_a_session() {
    let config = parse(include_str!("../../config/demo.toml")).unwrap();
    let [runtime] = &config.runtimes[..] else { panic!("{config:?}") };
    assert_eq!(runtime.spec.connect, Connect::Command(vec!["/opt/plexus".into(), "agent".into(), "demo".into()]));
    assert!(runtime.session);
}

#[test]
fn options_are_all_read() {
    let config = parse(
        r#"
        listen = "[::1]:0"
        public_hosts = ["Plexus.example.org", "x.example:8443"]
        public_url = "https://Plexus.example.org:443/"
        trusted_proxies = ["127.0.0.1", "10.0.0.0/8"]
        tls = { listen = "0.0.0.0:7443", cert = "~/c.pem", key = "k.pem" }
        log.durability = "power"
        retention = { max_age_days = 0, max_bytes = 1_000 }
        requests.expire_after = "2h"
        ceilings = { day = "20 USD, 2M tokens", session = "5 eur" }
        limits = { line_max = 0x10_0000, prompt_max = 65_536, device = 1_048_576, gateway = 0x4000_0000 }
        native.codex = false
        push.after = "5s"
        push.give_up_after = "1m"
        push.contact = "mailto:me@example.org"
        push.services = ["push.example.org", "http://127.0.0.1:8090"]

        [[push.webhook]]
        url = "https://example.org/${KEY}"
        secret = "${PLEXUS_WEBHOOK_SECRET}"
        events = ["failures"]

        [[push.ntfy]]
        url = "http://ntfy.lan/topic"
        token = "t"

        [[push.telegram]]
        token = "12:ab"
        chat_id = "-1001"

        [[runtime]]
        id = "mine"
        dialect = "acp"
        command = ["agent", "--acp"]
        cwd = "~/tmp"
        env = { A = "x${KEY}y$$z", B = "" }
        pass_env = ["FOO", "BAR_*"]
        restart = "on-failure"
        auth_method = "key"
        session_meta = { a = { b = [1, 2.5, true, "t"] } }
        session = true
        title = "T"
        ui_port = 7431
        remote_port = 7431

        [[runtime]]
        preset = "gemini"
        ui_port = 0
        remote_port = 7432
        ui_port_without_token_for_this_user = false
        id = "gemini-2"
        command = ["/opt/gemini", "--acp"]

        [[runtime]]
        id = "far"
        dialect = "codelia"
        connect = "unix:/run/x"
        "#,
    )
    .unwrap();
    assert_eq!(config.listen.to_string(), "[::1]:0");
    assert_eq!(config.public_hosts, ["plexus.example.org", "x.example:8443"]);
    assert_eq!(config.public_url.as_deref(), Some("https://plexus.example.org"));
    assert_eq!(config.trusted_proxies, ["127.0.0.1".parse().unwrap(), "10.0.0.0/8".parse().unwrap()]);
    let tls = TlsConfig { listen: "0.0.0.0:7443".parse().unwrap(), files: Some(("/c.pem".into(), "/k.pem".into())) };
    assert_eq!(config.tls, Some(tls));
    assert_eq!(config.durability, Durability::Power);
    assert_eq!(config.retention, RetentionConfig { max_age_days: None, max_bytes: Some(1000) });
    assert_eq!(config.ceilings.day.tokens, Some(2_000_000));
    assert_eq!((config.ceilings.session.costs[0].amount, &*config.ceilings.session.costs[0].currency), (5.0, "EUR"));
    assert_eq!(config.expire_after, Some(Duration::from_secs(7200)));
    assert_eq!((config.line_max, config.prompt_max), (1 << 20, 64 << 10));
    assert_eq!(config.limits, LedgerLimits { device: 1 << 20, gateway: 1 << 30, ..LedgerLimits::default() });
    assert_eq!(config.native, NativeConfig { codex: false });
    assert_eq!((config.push.after.as_secs(), config.push.give_up_after.as_secs()), (5, 60));
    assert_eq!(config.push.contact.as_deref(), Some("mailto:me@example.org"));
    assert_eq!(config.push.services, ["push.example.org", "http://127.0.0.1:8090"]);
    let [hook, ntfy, telegram] = config.push.channels.as_slice() else { panic!("{:?}", config.push.channels) };
    let setting = |channel: &ConfiguredChannel, name: &str| channel.settings[name].0.clone();
    assert_eq!((hook.kind, setting(hook, "url").as_str()), ("webhook", "https://example.org/secret"));
    assert_eq!(setting(hook, "secret"), "w");
    assert_eq!(hook.events, NotificationFilter { failures: true, ..NotificationFilter::NONE });
    assert_eq!((ntfy.kind, setting(ntfy, "url").as_str()), ("ntfy", "http://ntfy.lan/topic"));
    assert_eq!(ntfy.events, NotificationFilter::default());
    assert_eq!((telegram.kind, setting(telegram, "chat_id").as_str()), ("telegram", "-1001"));
    assert!(!facts(&config).contains("ntfy.lan"), "addresses that are secrets are not shown");
    let mine = &config.runtimes[0];
    assert_eq!((mine.spec.id.as_str(), mine.spec.dialect.as_str()), ("mine", "acp"));
    assert_eq!(mine.spec.connect, Connect::Command(vec!["agent".into(), "--acp".into()]));
    assert_eq!(mine.spec.cwd, Path::new("/tmp"));
    assert_eq!(mine.spec.env, BTreeMap::from([("A".into(), "xsecrety$z".into()), ("B".into(), String::new())]));
    assert_eq!(mine.spec.pass_env, ["FOO", "BAR_*"]);
    assert_eq!(mine.spec.restart, RestartPolicy::OnFailure);
    assert_eq!(mine.spec.auth_method.as_deref(), Some("key"));
    assert_eq!(mine.spec.session_meta.as_ref().unwrap().get(), r#"{"a":{"b":[1,2.5,true,"t"]}}"#);
    assert_eq!((mine.session, mine.title.as_deref()), (true, Some("T")));
    let ports = Ports { ui: Some(7431), remote: Some(7431), ui_without_token_for_this_user: false };
    assert_eq!(mine.ports, ports);
    let gemini = &config.runtimes[1];
    assert_eq!(gemini.ports, Ports { ui: Some(0), remote: Some(7432), ..Ports::default() });
    assert_eq!(config.runtimes[2].ports, Ports::default());
    assert_eq!(gemini.spec.connect, Connect::Command(vec!["/opt/gemini".into(), "--acp".into()]));
    assert_eq!(gemini.spec.auth_method.as_deref(), Some("gemini-api-key"), "the preset's own");
    assert_eq!(config.runtimes[2].spec.connect, Connect::Endpoint("unix:/run/x".into()));
}

#[test]
fn mistakes_are_reported_with_place_and_fix() {
    let presets = preset_names().join(", ");
    let kind =
        format!("p.toml:1:1: runtime: a runtime needs a kind: write preset = one of {presets}; or dialect and command");
    let dialects = crate::runtimes::dialects::names().join(", ");
    let unknown_dialect =
        format!("p.toml:3:11: runtime.dialect: unknown dialect \"apc\"; did you mean \"acp\"? Known: {dialects}");
    let unknown_preset =
        format!("p.toml:2:10: runtime.preset: unknown preset \"gemni\"; did you mean \"gemini\"? Known: {presets}");
    let cases: &[(&str, &str)] = &[
        ("lisen = \"x\"", "p.toml:1:1: lisen: unknown key; did you mean listen?"),
        (
            "\n  zzz = 1",
            "p.toml:2:3: zzz: unknown key; known keys: listen, public_hosts, public_url, \
             trusted_proxies, keep_awake, tls, log, retention, ceilings, requests, limits, push, native, runtime",
        ),
        ("[log]\ndurabilty = \"power\"", "p.toml:2:1: log.durabilty: unknown key; did you mean durability?"),
        ("listen = 7420", "p.toml:1:10: listen: must be text, not an integer: write listen = \"127.0.0.1:7420\""),
        ("listen = \"7420\"", "p.toml:1:10: listen: \"7420\" is not an address with a port: write \"127.0.0.1:7420\""),
        (
            "listen = \"0.0.0.0:7420\"",
            "p.toml:1:10: listen: 0.0.0.0 is reachable from other machines, which needs TLS: keep 127.0.0.1 here, run \
             `plexus tls init`, and set listen in [tls]; or put a TLS proxy in front (public_url)",
        ),
        (
            "public_hosts = [\"https://x/\"]",
            "p.toml:1:17: public_hosts: \"https://x/\" is not a host: write the bare name, with its port unless it is the \
             usual one: \"plexus.example.org\"",
        ),
        (
            "public_hosts = \"x\"",
            "p.toml:1:16: public_hosts: must be a list of texts, not a string: write public_hosts = [\"plexus.example.org\"]",
        ),
        (
            "public_url = \"box\"",
            "p.toml:1:14: public_url: \"box\" is not an origin: write only the scheme, name and port: \"https://plexus.example.org\"",
        ),
        (
            "public_url = \"https://x/path\"",
            "p.toml:1:14: public_url: \"https://x/path\" is not an origin: write only the scheme, name and port: \"https://plexus.example.org\"",
        ),
        ("public_url = \"http://box\"", "p.toml:1:14: public_url: other machines must use https: see docs/remote.md"),
        (
            "trusted_proxies = [\"proxy\"]",
            "p.toml:1:20: trusted_proxies: \"proxy\" is not the address of a proxy: write an address (\"127.0.0.1\") or a network (\"10.0.0.0/8\")",
        ),
        (
            "trusted_proxies = [\"0.0.0.0/0\"]",
            "p.toml:1:20: trusted_proxies: \"0.0.0.0/0\" is not the address of a proxy: that includes every address: list only your proxies",
        ),
        (
            "[tls]\nlisten = \"x\"",
            "p.toml:2:10: tls.listen: \"x\" is not an address with a port: write \"0.0.0.0:7443\" for all of IPv4, \"[::]:7443\" for everything",
        ),
        (
            "[tls]\nlisten = \"127.0.0.1:7420\"",
            "p.toml:2:10: tls.listen: 127.0.0.1:7420 is already used for plain HTTP: use another port for TLS",
        ),
        ("[tls]\nlisten = \"[::]:7443\"\ncert = \"c\"", "p.toml:3:8: tls.cert: has no key with it: add key = \"...\""),
        (
            "[tls]\nlisten = \"[::]:7443\"\nkey = \"c\"",
            "p.toml:3:7: tls.key: has no certificate with it: add cert = \"...\"",
        ),
        (
            "[tls]\ncert = \"c\"\nkey = \"k\"",
            "p.toml:2:8: tls.cert: has no effect without listen: add listen = \"0.0.0.0:7443\"",
        ),
        (
            "push.after = \"soon\"",
            "p.toml:1:14: push.after: \"soon\" is not a time span: write a whole number above 0 and s, m, h or d: \"20s\"",
        ),
        (
            "push.contact = \"me\"",
            "p.toml:1:16: push.contact: \"me\" is not a contact address: write \"mailto:me@example.org\", \
             or an address that begins with https://",
        ),
        (
            "push.services = [\"http://push.example.org\"]",
            "p.toml:1:18: push.services: \"http://push.example.org\" is not encrypted, and not on this machine: write a host \
             or an origin: \"push.example.org\", \"https://push.example.org:8443\"",
        ),
        (
            "[[push.webhook]]\nurl = \"ftp://x\"",
            "p.toml:2:7: push.webhook.url: must begin with https:// or http://: write url = \"https://example.org/plexus\"",
        ),
        (
            "[[push.ntfy]]\nevents = [\"request\"]",
            "p.toml:1:1: push.ntfy: needs an address: write url = \"https://ntfy.sh/my-topic\"\n\
             p.toml:2:11: push.ntfy.events: \"request\" is not one of requests, ends, failures, no_progress",
        ),
        (
            "[[push.telegram]]\ntoken = \"12\"\nchat_id = \"7\"",
            "p.toml:2:9: push.telegram.token: is not the token of a bot: write token = \"${TELEGRAM_TOKEN}\"",
        ),
        (
            "[[push.telegram]]\ntoken = \"${NOT_SET}\"\nchat_id = 7",
            "p.toml:2:9: push.telegram.token: the variable NOT_SET is not set: set it before starting the gateway, or write the value here\n\
             p.toml:3:11: push.telegram.chat_id: must be text, not an integer: write chat_id = \"123456789\"",
        ),
        ("log = 1", "p.toml:1:7: log: must be a table, not an integer: write [log] on a line of its own"),
        ("[log]\ndurability = \"disk\"", "p.toml:2:14: log.durability: \"disk\" is not one of process, power"),
        (
            "[ceilings]\nday = \"5\"",
            "p.toml:2:7: ceilings.day: \"5\" is no ceiling: write an amount and a currency, or tokens: 5 USD, 2M tokens",
        ),
        ("[retention]\nmax_age_days = -1", "p.toml:2:16: retention.max_age_days: -1 is out of range: from 0 to 36500"),
        (
            "[retention]\nmax_bytes = \"1 GB\"",
            "p.toml:2:13: retention.max_bytes: must be a whole number, not a string: write max_bytes = 1",
        ),
        (
            "[requests]\nexpire_after = \"soon\"",
            "p.toml:2:16: requests.expire_after: \"soon\" is not a time span: write a whole number above 0 and s, m, h or d: \"15m\"",
        ),
        (
            "[requests]\nexpire_after = \"0s\"",
            "p.toml:2:16: requests.expire_after: \"0s\" is not a time span: write a whole number above 0 and s, m, h or d: \"15m\"",
        ),
        ("[limits]\nline_max = 1", "p.toml:2:12: limits.line_max: 1 is out of range: from 65536 to 1073741824"),
        (
            "[runtime]\npreset = \"demo\"",
            "p.toml:1:1: runtime: must be a list of tables, not a table: write [[runtime]] on a line of its own",
        ),
        ("[[runtime]]", &kind),
        ("[[runtime]]\npreset = \"gemni\"", &unknown_preset),
        ("[[runtime]]\nid = \"x\"\ndialect = \"apc\"\ncommand = [\"x\"]", &unknown_dialect),
        (
            "[[runtime]]\ndialect = \"acp\"\ncommand = [\"x\"]",
            "p.toml:1:1: runtime: a runtime needs a name: write id = \"...\"",
        ),
        (
            "[[runtime]]\nid = \"x\"\ndialect = \"acp\"",
            "p.toml:1:1: runtime: a runtime needs a program or an endpoint: write command = [\"PROGRAM\", \"ARGUMENT\"], or \
             connect = \"ws://...\"",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\ndialect = \"acp\"",
            "p.toml:3:11: runtime.dialect: a preset defines its dialect: remove one of the two",
        ),
        (
            "[[runtime]]\nid = \"x\"\ndialect = \"acp\"\ncommand = \"x --acp\"",
            "p.toml:4:11: runtime.command: must be a list of texts, not a string: write command = [\"gemini\", \"--acp\"]",
        ),
        (
            "[[runtime]]\nid = \"x\"\ndialect = \"acp\"\ncommand = []",
            "p.toml:4:11: runtime.command: has no program: write command = [\"gemini\", \"--acp\"]",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\ncommand = [\"x\"]\nconnect = \"ws://x/\"",
            "p.toml:4:11: runtime.connect: a runtime has a command or an endpoint: remove one of them",
        ),
        (
            "[[runtime]]\nid = \"x\"\ndialect = \"acp\"\nconnect = \"ftp://x\"",
            "p.toml:4:11: runtime.connect: \"ftp://x\" is not an endpoint: write ws://..., http://... or unix:/path",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nid = \"a b\"",
            "p.toml:3:6: runtime.id: \"a b\" is not an identifier: use 1 to 128 of A-Z a-z 0-9 _ - . :",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\n[[runtime]]\npreset = \"demo\"",
            "p.toml:3:1: runtime.id: \"demo\" is already the id of the runtime in line 1: use a different one (id = \"demo-2\")",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\ncwd = \"no/such\"",
            "p.toml:3:7: runtime.cwd: \"no/such\" is not a folder: create it, or use another one",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nenv = { A = \"${MISSING}\" }",
            "p.toml:3:13: runtime.env.A: the variable MISSING is not set: set it before starting the gateway, or write the value here",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nenv = { A = \"cost $5\" }",
            "p.toml:3:13: runtime.env.A: a single $: write ${NAME} for the value of a variable, or $$ for a dollar sign",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nenv = { A = 1 }",
            "p.toml:3:13: runtime.env.A: must be text, not an integer: put it in quotes",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\npass_env = [\"A=B\"]",
            "p.toml:3:13: runtime.pass_env: \"A=B\" is not a variable name: write only the name",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nrestart = \"sometimes\"",
            "p.toml:3:11: runtime.restart: \"sometimes\" is not one of never, on-failure, always",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nsession = \"yes\"",
            "p.toml:3:11: runtime.session: must be true or false, not a string: write session = true",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\ntitle = \"T\"",
            "p.toml:3:9: runtime.title: is the title of the first session: add session = true",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nsession_meta = { a = nan }",
            "p.toml:3:16: runtime.session_meta: contains a number that JSON cannot represent: use another",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nsesion = true",
            "p.toml:3:1: runtime.sesion: unknown key; did you mean session?",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nui_port = \"0.0.0.0:7431\"",
            "p.toml:3:11: runtime.ui_port: must be a port's number, not a string: write ui_port = 7431; it is served on the \
             loopback address of listen alone",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nremote_port = 65536",
            "p.toml:3:15: runtime.remote_port: 65536 is not a port: use 0 (a free one) to 65535",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nremote_port = -1",
            "p.toml:3:15: runtime.remote_port: -1 is not a port: use 0 (a free one) to 65535",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nui_port = 7420",
            "p.toml:3:11: runtime.ui_port: port 7420 is already the gateway's own (listen): use another port, or 0 for a \
             free one",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nui_port = 7\n[[runtime]]\npreset = \"demo\"\nid = \"b\"\nremote_port = 7",
            "p.toml:7:15: runtime.remote_port: port 7 is already ui_port of the runtime in line 1: use another port, or 0 \
             for a free one",
        ),
        (
            "[[runtime]]\npreset = \"demo\"\nremote_port = 0\nui_port_without_token_for_this_user = true",
            "p.toml:4:39: runtime.ui_port_without_token_for_this_user: has no effect without a UI mirror: add ui_port = \
             7431",
        ),
        (
            "lisen = 1\n[log]\ndurability = 2",
            "p.toml:1:1: lisen: unknown key; did you mean listen?\n\
             p.toml:3:14: log.durability: must be text, not an integer: write durability = \"process\"",
        ),
    ];
    for (text, error) in cases {
        assert_eq!(parse(text).map(|config| facts(&config)).unwrap_err(), *error, "{text}");
    }
    // The parser's own words, with our place.
    let error = parse("listen = \"x\"\nlisten = \"y\"").unwrap_err();
    assert!(error.starts_with("p.toml:2:1: not TOML: "), "{error}");
    let error = parse("a = [").unwrap_err();
    assert!(error.starts_with("p.toml:1:") && error.contains("not TOML"), "{error}");
}

#[test]
fn unreadable_file_is_reported_with_the_cause() {
    let dir = tempfile::tempdir().unwrap();
    let load = |path: &Path| Config::load(path, &around()).unwrap_err().to_string();
    let path = dir.path().join("x.toml");
    assert_eq!(load(&path), format!("{}: there is no such file: check the path after -c", path.display()));
    assert!(load(dir.path()).ends_with(": is a folder: specify the file in it"));
    std::fs::write(&path, b"\xff").unwrap();
    assert!(load(&path).ends_with(": is not UTF-8 text: save it as UTF-8"));
    std::fs::write(&path, vec![b' '; FILE_MAX as usize + 1]).unwrap();
    assert!(load(&path).contains("is larger than"));
}

#[test]
fn misspellings_get_a_suggestion_and_other_words_none() {
    let known = ["listen", "runtime", "log"];
    for (got, near) in [
        ("lisen", Some("listen")),
        ("LISTEN", Some("listen")),
        ("runtmie", Some("runtime")),
        ("public", None),
        ("x", None),
    ] {
        assert_eq!(nearest(got, known), near, "{got}");
    }
}

#[test]
fn mirror_without_a_token_is_off_and_needs_known_connection_owners() {
    let text = "[[runtime]]\npreset = \"demo\"\nui_port = 1\n";
    assert!(!parse(text).unwrap().runtimes[0].ports.ui_without_token_for_this_user);
    let open = parse(&format!("{text}ui_port_without_token_for_this_user = true"));
    if cfg!(target_os = "linux") {
        assert!(open.unwrap().runtimes[0].ports.ui_without_token_for_this_user);
    } else {
        assert!(open.unwrap_err().contains("needs Linux"));
    }
}
