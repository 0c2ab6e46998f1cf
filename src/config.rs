//! The configuration file: each option is read, checked and documented in one place.
//!
//! The options are read from TOML's spanned tree rather than through derived types, so that every problem (not only the first) is
//! reported with file, line, column, key and fix. Unknown keys are refused. `config/plexus.toml` documents every option; a test checks
//! that it equals [`Config::default`].

mod fields;

pub use fields::nearest;
use fields::{ConfigText, TableFields, duration};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::value::RawValue;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use crate::ledger::LedgerLimits;
pub use crate::notify::NotifySettings as Push;
use crate::notify::{
    CHANNEL_KINDS, CHANNELS, ChannelKind, ConfiguredChannel, HiddenText, NotificationFilter, check_service,
};
use crate::router::{Network, parse_origin};
use crate::runtimes::{dialects, presets};
pub use crate::sessions::PROMPT_MAX;
use plexus_protocol::{Ceiling, Connect, RestartPolicy, RuntimeId, RuntimeSpec};
use plexus_store::Durability;

/// The default address of the gateway.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7420);
/// Default age after which events are deleted, in days.
pub const MAX_AGE_DAYS: u64 = 90;
/// Default size of the stored events, in bytes: 20 GiB.
pub const MAX_BYTES: u64 = 20 << 30;
/// Default maximum length of a runtime's line, in bytes: 64 MiB. The beginning of a longer one becomes a `raw` event.
pub const LINE_MAX: usize = 64 << 20;
/// Minimum of `line_max`, in bytes: agents put whole files into one line.
const MIN_LINE_MAX: u64 = 64 << 10;
/// Maximum of `line_max`, in bytes: a line is held in memory as a whole.
const MAX_LINE_MAX: u64 = 1 << 30;
/// Minimum of `prompt_max`, in bytes.
const MIN_PROMPT_MAX: u64 = 4 << 10;
/// Maximum of `prompt_max`, in bytes: the client message with the prompt is at most 16 MiB.
const MAX_PROMPT_MAX: u64 = 15 << 20;
/// Minimum limit of an account, in bytes.
const MIN_ACCOUNT: u64 = 1 << 20;
/// Maximum limit of an account, in bytes.
const MAX_ACCOUNT: u64 = 1 << 40;
/// Maximum size of the configuration file, in bytes.
const FILE_MAX: u64 = 1 << 20;
/// Maximum number of edits between a misspelt name and the known one that is suggested.
const TYPO_MAX: usize = 2;

/// The configuration of a gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on; loopback only. Port 0 selects a free one.
    pub listen: SocketAddr,
    /// `Host` values allowed besides the address itself: the names of a TLS proxy in front.
    pub public_hosts: Vec<String>,
    /// The origin by which other devices reach the gateway, without a slash at its end.
    pub public_url: Option<String>,
    /// Proxies whose `X-Forwarded-For` counts.
    pub trusted_proxies: Vec<Network>,
    /// The listener for other machines.
    pub tls: Option<TlsConfig>,
    /// The data that a crash may lose.
    pub durability: Durability,
    /// The limits of stored events.
    pub retention: RetentionConfig,
    /// The amounts that agents may spend before they have to ask.
    pub ceilings: CeilingConfig,
    /// Lifetime of an open request; unlimited if `None`.
    pub expire_after: Option<Duration>,
    /// Maximum length of a runtime's line, in bytes.
    pub line_max: usize,
    /// Maximum size of a prompt, in bytes of its content.
    pub prompt_max: usize,
    /// Memory limits.
    pub limits: LedgerLimits,
    /// Notifications.
    pub push: Push,
    /// Agents that users start in a terminal by hand.
    pub native: NativeConfig,
    /// `true` if the machine does not sleep while an agent works or waits.
    pub keep_awake: bool,
    /// Runtimes to start with the gateway.
    pub runtimes: Vec<RuntimeConfig>,
}

/// A TLS listener, for other machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The address to listen on. Port 0 selects a free one.
    pub listen: SocketAddr,
    /// The certificate with its chain, and its key; those of `plexus tls init` if `None`.
    pub files: Option<(PathBuf, PathBuf)>,
}

/// The agents whose own terminals are attached without a runtime of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeConfig {
    /// `true` for Codex, by the daemon that its terminals share.
    pub codex: bool,
}

impl Default for NativeConfig {
    fn default() -> Self {
        Self { codex: true }
    }
}

/// The limits of stored events. Events that an open request or an unfinished run needs are stored beyond both limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionConfig {
    /// Age after which events are deleted, in days; unlimited if `None`.
    pub max_age_days: Option<u64>,
    /// Size beyond which the oldest events are deleted, in bytes; unlimited if `None`.
    pub max_bytes: Option<u64>,
}

/// The amounts that agents may spend before they have to ask; without figures there is no ceiling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CeilingConfig {
    /// The ceiling of all sessions in a day.
    pub day: Ceiling,
    /// The ceiling of each session.
    pub session: Ceiling,
}

/// A runtime to start with the gateway.
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// The runtime.
    pub spec: RuntimeSpec,
    /// `true` to open a session at the start.
    pub session: bool,
    /// The title of that session.
    pub title: Option<String>,
    /// The runtime's own ports.
    pub ports: Ports,
}

/// The ports on which a runtime is served as a Gemini UI, on the loopback address of [`Config::listen`]. Two equal ports are one
/// listener; port 0 selects a free port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// The port of the UI mirror.
    pub ui: Option<u16>,
    /// The port of the remote control.
    pub remote: Option<u16>,
    /// `true` if processes of this user may follow the mirror without a token. Linux only: elsewhere the owner of a connection
    /// is unknown.
    pub ui_without_token_for_this_user: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: LISTEN,
            public_hosts: Vec::new(),
            public_url: None,
            trusted_proxies: Vec::new(),
            tls: None,
            durability: Durability::Process,
            retention: RetentionConfig { max_age_days: Some(MAX_AGE_DAYS), max_bytes: Some(MAX_BYTES) },
            ceilings: CeilingConfig::default(),
            expire_after: None,
            line_max: LINE_MAX,
            prompt_max: PROMPT_MAX,
            limits: LedgerLimits::default(),
            push: Push::default(),
            native: NativeConfig::default(),
            keep_awake: true,
            runtimes: Vec::new(),
        }
    }
}

/// The surroundings that a configuration refers to.
#[derive(Clone, Debug)]
pub struct ConfigContext {
    /// The running program, for the `demo` preset.
    pub exe: PathBuf,
    /// The base of relative paths: the folder in which the gateway was started. Absolute.
    pub cwd: PathBuf,
    /// The environment, for `${VAR}`, without values that are not UTF-8.
    pub env: BTreeMap<String, String>,
}

impl ConfigContext {
    /// Returns the surroundings of this process.
    ///
    /// # Errors
    /// The current folder does not exist or may not be read.
    pub fn from_process(exe: PathBuf) -> std::io::Result<Self> {
        let env =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Ok(Self { exe, cwd: std::env::current_dir()?, env: env.collect() })
    }

    fn var(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }
}

/// An error in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The file's name as given.
    pub file: String,
    /// Line and column (in characters), both from 1; `None` if the file could not be read.
    pub position: Option<(usize, usize)>,
    /// The key with its tables (`runtime.cwd`); empty if the error is not in a key.
    pub key: String,
    /// The problem and the fix.
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// The errors of a file, in the file's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The errors; never empty.
    pub problems: Vec<ConfigProblem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or has errors.
    pub fn load(path: &Path, context: &ConfigContext) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let fail = |message: String| {
            let problem = ConfigProblem { file: file.clone(), position: None, key: String::new(), message };
            Err(ConfigError { problems: vec![problem] })
        };
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_dir() => return fail("is a folder: specify the file in it".into()),
            Ok(meta) if meta.len() > FILE_MAX => {
                return fail(format!("is larger than {FILE_MAX} bytes: check that it is the right file"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return fail("there is no such file: check the path after -c".into());
            }
            Err(error) => return fail(format!("cannot be read ({error}): check its permissions")),
        }
        match std::fs::read(path).map(String::from_utf8) {
            Ok(Ok(text)) => Self::parse(&text, &file, context),
            Ok(Err(_)) => fail("is not UTF-8 text: save it as UTF-8".into()),
            Err(error) => fail(format!("cannot be read ({error}): check its permissions")),
        }
    }

    /// Reads a configuration from its text; `file` is its name in messages.
    ///
    /// # Errors
    /// The text has errors.
    pub fn parse(text: &str, file: &str, context: &ConfigContext) -> Result<Self, ConfigError> {
        let doc = ConfigText { text, file, problems: RefCell::default() };
        let config = match DeTable::parse(text) {
            Ok(root) => {
                let span = root.span();
                let mut root = TableFields::new(&doc, String::new(), span, root.into_inner());
                let config = read(&mut root, context);
                root.finish();
                config
            }
            Err(reason) => {
                let message = reason.message().lines().collect::<Vec<_>>().join(", ");
                doc.problem(reason.span().unwrap_or(0..0), "", format!("not TOML: {message}"));
                Self::default()
            }
        };
        let mut problems = doc.problems.into_inner();
        problems.sort_by_key(|problem: &ConfigProblem| problem.position);
        if problems.is_empty() { Ok(config) } else { Err(ConfigError { problems }) }
    }
}

/// Reads an address to listen on: `127.0.0.1:7420`, `[::1]:7420`, `localhost:7420`.
///
/// # Errors
/// The error and the fix, as text.
pub fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let addr = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}").parse(),
        None => text.parse::<SocketAddr>(),
    };
    match addr {
        Ok(addr) if addr.ip().is_loopback() => Ok(addr),
        Ok(addr) => Err(format!(
            "{} is reachable from other machines, which needs TLS: keep 127.0.0.1 here, run `plexus tls init`, and set \
             listen in [tls]; or put a TLS proxy in front (public_url)",
            addr.ip()
        )),
        Err(_) => Err(format!("\"{text}\" is not an address with a port: write \"{LISTEN}\"")),
    }
}

fn read(root: &mut TableFields<'_, '_>, context: &ConfigContext) -> Config {
    let mut config = Config::default();
    if let Some((span, text)) = root.text("listen", "\"127.0.0.1:7420\"") {
        match parse_listen(&text) {
            Ok(addr) => config.listen = addr,
            Err(message) => root.problem(span, "listen", message),
        }
    }
    for (span, host) in root.texts("public_hosts", "[\"plexus.example.org\"]").unwrap_or_default() {
        if host
            .parse::<http::uri::Authority>()
            .is_ok_and(|name| !name.as_str().contains('@') && !name.host().is_empty())
        {
            config.public_hosts.push(host.to_ascii_lowercase());
        } else {
            let fix = "write the bare name, with its port unless it is the usual one: \"plexus.example.org\"";
            root.problem(span, "public_hosts", format!("\"{host}\" is not a host: {fix}"));
        }
    }
    if let Some((span, text)) = root.text("public_url", "\"https://plexus.example.org\"") {
        match parse_origin(&text) {
            Ok(url) => config.public_url = Some(url),
            Err(message) => root.problem(span, "public_url", message),
        }
    }
    for (span, text) in root.texts("trusted_proxies", "[\"127.0.0.1\"]").unwrap_or_default() {
        match text.parse() {
            Ok(network) => config.trusted_proxies.push(network),
            Err(fix) => {
                root.problem(span, "trusted_proxies", format!("\"{text}\" is not the address of a proxy: {fix}"))
            }
        }
    }
    config.keep_awake = root.flag("keep_awake").unwrap_or(config.keep_awake);
    if let Some(mut tls) = root.table("tls") {
        config.tls = read_tls(&mut tls, config.listen, context);
        tls.finish();
    }
    if let Some(mut log) = root.table("log") {
        let names = [("process", Durability::Process), ("power", Durability::Power)];
        config.durability = log.word("durability", &names).unwrap_or_default();
        log.finish();
    }
    read_retention(root, &mut config.retention);
    read_ceilings(root, &mut config.ceilings);
    if let Some(mut requests) = root.table("requests") {
        if let Some((span, text)) = requests.text("expire_after", "\"15m\"") {
            match duration(&text) {
                Some(after) => config.expire_after = Some(after),
                None => {
                    let fix = "write a whole number above 0 and s, m, h or d: \"15m\"";
                    requests.problem(span, "expire_after", format!("\"{text}\" is not a time span: {fix}"));
                }
            }
        }
        requests.finish();
    }
    read_limits(root, &mut config);
    if let Some(mut push) = root.table("push") {
        config.push = read_push(&mut push, context);
        push.finish();
    }
    if let Some(mut native) = root.table("native") {
        config.native.codex = native.flag("codex").unwrap_or(config.native.codex);
        native.finish();
    }
    let mut ids: BTreeMap<RuntimeId, usize> = BTreeMap::new();
    let mut taken = BTreeMap::from([(config.listen.port(), "the gateway's own (listen)".to_owned())]);
    if let Some(tls) = &config.tls {
        taken.insert(tls.listen.port(), "the gateway's own (tls.listen)".into());
    }
    for mut fields in root.tables("runtime") {
        let read = read_runtime(&mut fields, context);
        let ports = read_ports(&mut fields, &mut taken);
        if let Some((span, mut runtime)) = read {
            runtime.ports = ports;
            let line = fields.doc.position(span.start).0;
            if let Some(first) = ids.get(&runtime.spec.id) {
                let message = format!(
                    "\"{}\" is already the id of the runtime in line {first}: use a different one (id = \"{}-2\")",
                    runtime.spec.id, runtime.spec.id
                );
                fields.problem(span, "id", message);
            } else {
                ids.insert(runtime.spec.id.clone(), line);
                config.runtimes.push(runtime);
            }
        }
        fields.finish();
    }
    config
}

fn read_tls(fields: &mut TableFields<'_, '_>, plain: SocketAddr, context: &ConfigContext) -> Option<TlsConfig> {
    let listen = fields.text("listen", "\"0.0.0.0:7443\"");
    let (cert, key) = (fields.text("cert", "\"/path/to/fullchain.pem\""), fields.text("key", "\"/path/to/key.pem\""));
    match (&cert, &key) {
        (Some((span, _)), None) => fields.problem(span.clone(), "cert", "has no key with it: add key = \"...\"".into()),
        (None, Some((span, _))) => {
            fields.problem(span.clone(), "key", "has no certificate with it: add cert = \"...\"".into());
        }
        (Some((span, _)), _) if listen.is_none() && !fields.has("listen") => {
            fields.problem(span.clone(), "cert", "has no effect without listen: add listen = \"0.0.0.0:7443\"".into());
        }
        _ => {}
    }
    let (span, text) = listen?;
    let address = match text.parse::<SocketAddr>() {
        Ok(address) if address == plain && address.port() != 0 => {
            let message = format!("{address} is already used for plain HTTP: use another port for TLS");
            fields.problem(span, "listen", message);
            return None;
        }
        Ok(address) => address,
        Err(_) => {
            let fix = "write \"0.0.0.0:7443\" for all of IPv4, \"[::]:7443\" for everything";
            fields.problem(span, "listen", format!("\"{text}\" is not an address with a port: {fix}"));
            return None;
        }
    };
    let file = |(_, text): (Range<usize>, String)| folder(&text, context);
    Some(TlsConfig { listen: address, files: cert.map(file).zip(key.map(file)) })
}

/// Resolves a path of the configuration: `~/` is the home folder; a relative path is based on the folder in which the gateway was
/// started.
fn folder(text: &str, context: &ConfigContext) -> PathBuf {
    match text.strip_prefix("~/").or((text == "~").then_some("")) {
        Some(rest) => context.var("HOME").map_or_else(|| context.cwd.join(text), |home| Path::new(&home).join(rest)),
        None => context.cwd.join(text),
    }
}

/// Reads `[push]`.
fn read_push(fields: &mut TableFields<'_, '_>, context: &ConfigContext) -> Push {
    let mut push = Push::default();
    for (key, span) in [("after", &mut push.after), ("give_up_after", &mut push.give_up_after)] {
        if let Some((at, text)) = fields.text(key, "\"20s\"") {
            match duration(&text) {
                Some(given) => *span = given,
                None => {
                    let fix = "write a whole number above 0 and s, m, h or d: \"20s\"";
                    fields.problem(at, key, format!("\"{text}\" is not a time span: {fix}"));
                }
            }
        }
    }
    if let Some((at, text)) = fields.text("contact", "\"mailto:me@example.org\"") {
        if text.starts_with("mailto:") || text.starts_with("https://") {
            push.contact = Some(text);
        } else {
            let fix = "write \"mailto:me@example.org\", or an address that begins with https://";
            fields.problem(at, "contact", format!("\"{text}\" is not a contact address: {fix}"));
        }
    }
    for (at, service) in fields.texts("services", "[\"push.example.org\"]").unwrap_or_default() {
        match check_service(&service) {
            Ok(()) => push.services.push(service),
            Err(reason) => fields.problem(at, "services", reason),
        }
    }
    for kind in CHANNEL_KINDS {
        for mut channel in channels(fields, kind.name) {
            push.channels.extend(read_channel(&mut channel, kind, context));
            channel.finish();
        }
    }
    push
}

fn channels<'d, 'i>(fields: &mut TableFields<'d, 'i>, key: &'static str) -> Vec<TableFields<'d, 'i>> {
    let mut all = fields.tables(key);
    if all.len() > CHANNELS {
        fields.problem(fields.last.clone(), key, format!("at most {CHANNELS} are allowed, not {}", all.len()));
        all.truncate(CHANNELS);
    }
    all
}

/// Reads one `[[push.<kind>]]`.
fn read_channel(
    fields: &mut TableFields<'_, '_>,
    kind: &ChannelKind,
    context: &ConfigContext,
) -> Option<ConfiguredChannel> {
    let whole = fields.span.clone();
    let (mut settings, mut places, mut complete) = (BTreeMap::new(), BTreeMap::new(), true);
    for setting in kind.settings {
        let (name, example) = (setting.name, setting.example);
        match fields.secret(name, &format!("\"{example}\""), context) {
            Some(value) => drop(settings.insert(name, HiddenText(value))),
            // An invalid value was reported already.
            None => complete &= !fields.has(name),
        }
        places.insert(name, (fields.last.clone(), example));
        if let Some(needed) = setting.needed
            && !fields.has(name)
        {
            fields.problem(whole.clone(), "", format!("needs {needed}: write {name} = \"{example}\""));
            complete = false;
        }
    }
    let mut filter = NotificationFilter::default();
    if let Some(events) = fields.texts("events", "[\"requests\", \"ends\", \"failures\", \"no_progress\"]") {
        filter = NotificationFilter::NONE;
        for (at, event) in events {
            match event.as_str() {
                "requests" => filter.requests = true,
                "ends" => filter.ends = true,
                "failures" => filter.failures = true,
                "no_progress" => filter = filter.with_no_progress(),
                _ => {
                    let known = "requests, ends, failures, no_progress";
                    fields.problem(at, "events", format!("\"{event}\" is not one of {known}"));
                }
            }
        }
    }
    if !complete {
        return None;
    }
    match ConfiguredChannel::new(kind, settings, filter) {
        Ok(channel) => Some(channel),
        Err(error) => {
            let (at, example) = places.remove(error.setting).unwrap_or((whole, ""));
            fields.problem(at, error.setting, format!("{}: write {} = \"{example}\"", error.reason, error.setting));
            None
        }
    }
}

/// Reads `[ceilings]`.
fn read_ceilings(root: &mut TableFields<'_, '_>, ceilings: &mut CeilingConfig) {
    let Some(mut fields) = root.table("ceilings") else { return };
    for (key, ceiling) in [("day", &mut ceilings.day), ("session", &mut ceilings.session)] {
        let Some((span, text)) = fields.text(key, "\"5 USD, 2M tokens\"") else { continue };
        match Ceiling::parse(&text) {
            Ok(read) => *ceiling = read,
            Err(reason) => fields.problem(span, key, reason),
        }
    }
    fields.finish();
}

/// Reads `[retention]`.
fn read_retention(root: &mut TableFields<'_, '_>, retention: &mut RetentionConfig) {
    if let Some(mut fields) = root.table("retention") {
        let none_if_zero = |n: u64| (n > 0).then_some(n);
        if let Some(days) = fields.number("max_age_days", 0, 36_500) {
            retention.max_age_days = none_if_zero(days);
        }
        if let Some(bytes) = fields.number("max_bytes", 0, i64::MAX as u64) {
            retention.max_bytes = none_if_zero(bytes);
        }
        fields.finish();
    }
}

/// Reads `[limits]`.
fn read_limits(root: &mut TableFields<'_, '_>, config: &mut Config) {
    if let Some(mut limits) = root.table("limits") {
        if let Some(bytes) = limits.number("line_max", MIN_LINE_MAX, MAX_LINE_MAX) {
            config.line_max = usize::try_from(bytes).unwrap_or(LINE_MAX);
        }
        if let Some(bytes) = limits.number("prompt_max", MIN_PROMPT_MAX, MAX_PROMPT_MAX) {
            config.prompt_max = usize::try_from(bytes).unwrap_or(PROMPT_MAX);
        }
        let LedgerLimits { gateway, strangers, clients, device, connection, agents, runtime, session, exempt: _ } =
            &mut config.limits;
        for (key, limit) in [
            ("gateway", gateway),
            ("strangers", strangers),
            ("clients", clients),
            ("device", device),
            ("connection", connection),
            ("agents", agents),
            ("runtime", runtime),
            ("session", session),
        ] {
            if let Some(bytes) = limits.number(key, MIN_ACCOUNT, MAX_ACCOUNT) {
                *limit = usize::try_from(bytes).unwrap_or(usize::MAX);
            }
        }
        limits.finish();
    }
}

/// Reads one `[[runtime]]`. All keys are read even after an error, so that all errors are reported.
fn read_runtime(fields: &mut TableFields<'_, '_>, context: &ConfigContext) -> Option<(Range<usize>, RuntimeConfig)> {
    let whole = fields.span.clone();
    let id = fields.text("id", "\"gemini\"");
    let preset = fields.text("preset", "\"gemini\"");
    let dialect = fields.text("dialect", "\"acp\"");
    let command = fields.texts("command", "[\"gemini\", \"--acp\"]");
    let command_at = fields.last.clone();
    let connect = fields.text("connect", "\"ws://127.0.0.1:9999/\"");
    let cwd = fields.text("cwd", "\".\"");
    let env = fields.env("env", context);
    let pass_env = fields.texts("pass_env", "[\"MY_VARIABLE\"]");
    let restart_names =
        [("never", RestartPolicy::Never), ("on-failure", RestartPolicy::OnFailure), ("always", RestartPolicy::Always)];
    let restart = fields.word("restart", &restart_names);
    let auth_method = fields.text("auth_method", "\"gemini-api-key\"");
    let session_meta = fields.json("session_meta");
    let (outlive, ui) = (fields.flag("outlive"), fields.flag("ui"));
    let secret = fields.secret("secret", "\"${OPENCODE_SERVER_PASSWORD}\"", context);
    let remote = fields.text("remote", "\"http://127.0.0.1:3000\"");
    let (serve_fs, serve_terminal) = (fields.flag("serve_fs"), fields.flag("serve_terminal"));
    let session = fields.flag("session").unwrap_or(false);
    let title = fields.text("title", "\"My project\"");

    let reached = command.is_some() || connect.is_some() || fields.has("command") || fields.has("connect");
    let mut spec = match (&preset, &dialect) {
        (Some(preset), None) => preset_spec(fields, preset, context),
        (None, Some(dialect)) => dialect_spec(fields, dialect, reached, id.is_some()),
        (Some(_), Some((at, _))) => {
            fields.problem(at.clone(), "dialect", "a preset defines its dialect: remove one of the two".into());
            None
        }
        (None, None) => {
            if !fields.has("preset") && !fields.has("dialect") {
                let names = preset_names().join(", ");
                let fix = format!("write preset = one of {names}; or dialect and command");
                fields.problem(whole.clone(), "", format!("a runtime needs a kind: {fix}"));
            }
            None
        }
    };
    let mut at = whole;
    if let Some((span, text)) = id {
        match text.parse::<RuntimeId>() {
            Ok(id) => {
                if let Some(spec) = &mut spec {
                    spec.id = id;
                }
            }
            Err(reason) => fields.problem(span.clone(), "id", format!("\"{text}\" is {reason}")),
        }
        at = span;
    }
    if let Some((span, endpoint)) = connect {
        if command.is_some() {
            fields.problem(span, "connect", "a runtime has a command or an endpoint: remove one of them".into());
        } else if ["ws://", "http://", "unix:"].iter().any(|scheme| endpoint.starts_with(scheme)) {
            if let Some(spec) = &mut spec {
                spec.connect = Connect::Endpoint(endpoint);
            }
        } else {
            let fix = "write ws://..., http://... or unix:/path";
            fields.problem(span, "connect", format!("\"{endpoint}\" is not an endpoint: {fix}"));
        }
    }
    if let Some(argv) = command {
        let argv: Vec<String> = argv.into_iter().map(|(_, word)| word).collect();
        if argv.first().is_none_or(String::is_empty) {
            let message = "has no program: write command = [\"gemini\", \"--acp\"]";
            fields.problem(command_at, "command", message.into());
        } else if let Some(spec) = &mut spec {
            spec.connect = Connect::Command(argv);
        }
    }
    let folder = cwd.as_ref().map_or_else(|| context.cwd.clone(), |(_, text)| folder(text, context));
    if let Some((span, text)) = cwd.filter(|_| !folder.is_dir()) {
        fields.problem(span, "cwd", format!("\"{text}\" is not a folder: create it, or use another one"));
    }
    for (span, name) in pass_env.iter().flatten() {
        if name.is_empty() || name.contains(['=', '\0']) {
            fields.problem(span.clone(), "pass_env", format!("\"{name}\" is not a variable name: write only the name"));
        }
    }
    if let Some((span, _)) = title.as_ref().filter(|_| !session) {
        fields.problem(span.clone(), "title", "is the title of the first session: add session = true".into());
    }
    let mut spec = spec?;
    spec.cwd = folder;
    spec.env.extend(env.unwrap_or_default());
    spec.pass_env.extend(pass_env.into_iter().flatten().map(|(_, name)| name));
    spec.restart = restart.unwrap_or(spec.restart);
    spec.auth_method = auth_method.map(|(_, method)| method).or(spec.auth_method);
    spec.session_meta = session_meta.or(spec.session_meta);
    spec.outlive = outlive.unwrap_or(spec.outlive);
    spec.ui = ui.unwrap_or(spec.ui);
    spec.secret = secret.or(spec.secret);
    spec.remote = remote.map(|(_, remote)| remote).or(spec.remote);
    spec.serve.fs = serve_fs.unwrap_or(spec.serve.fs);
    spec.serve.terminal = serve_terminal.unwrap_or(spec.serve.terminal);
    Some((at, RuntimeConfig { spec, session, title: title.map(|(_, title)| title), ports: Ports::default() }))
}

/// Returns the spec of a preset.
fn preset_spec(
    fields: &mut TableFields<'_, '_>,
    (at, name): &(Range<usize>, String),
    context: &ConfigContext,
) -> Option<RuntimeSpec> {
    let found = presets::preset(name, &context.exe, |var| context.var(var)).ok();
    if found.is_none() {
        fields.problem(at.clone(), "preset", unknown(preset_names(), "preset", name));
    }
    found
}

/// Returns the spec of a dialect, without a name and a program. `reached`: a command or an address is given, valid or not.
fn dialect_spec(
    fields: &mut TableFields<'_, '_>,
    (at, name): &(Range<usize>, String),
    reached: bool,
    has_id: bool,
) -> Option<RuntimeSpec> {
    let whole = fields.span.clone();
    if dialects::find(name).is_none() {
        fields.problem(at.clone(), "dialect", unknown(dialects::names(), "dialect", name));
    }
    if !reached {
        let fix = "write command = [\"PROGRAM\", \"ARGUMENT\"], or connect = \"ws://...\"";
        fields.problem(whole.clone(), "", format!("a runtime needs a program or an endpoint: {fix}"));
    }
    if !has_id && !fields.has("id") {
        fields.problem(whole, "", "a runtime needs a name: write id = \"...\"".into());
    }
    let unnamed = RuntimeId::trusted("unnamed");
    Some(RuntimeSpec::new(unnamed, name, Connect::Command(Vec::new()), PathBuf::new()))
}

/// Returns the message for a name that is not in `names`.
fn unknown(names: Vec<&str>, what: &str, got: &str) -> String {
    let hint = match nearest(got, names.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"? "),
        None => String::new(),
    };
    format!("unknown {what} \"{got}\"; {hint}Known: {}", names.join(", "))
}

/// Reads a runtime's own ports. `taken` maps the ports of other runtimes to their owners.
fn read_ports(fields: &mut TableFields<'_, '_>, taken: &mut BTreeMap<u16, String>) -> Ports {
    let line = fields.doc.position(fields.span.start).0;
    let (ui, remote) = (fields.port("ui_port", 7431), fields.port("remote_port", 7432));
    let open = fields.flag("ui_port_without_token_for_this_user");
    let open_at = fields.last.clone();
    let mut own = Vec::new();
    for (key, port) in [("ui_port", &ui), ("remote_port", &remote)] {
        let Some((span, port)) = port else { continue };
        match taken.get(port) {
            Some(whose) if *port != 0 && !own.contains(port) => {
                let fix = "use another port, or 0 for a free one";
                fields.problem(span.clone(), key, format!("port {port} is already {whose}: {fix}"));
            }
            _ => {
                taken.insert(*port, format!("{key} of the runtime in line {line}"));
                own.push(*port);
            }
        }
    }
    if open == Some(true) {
        let message = if ui.is_none() {
            Some("has no effect without a UI mirror: add ui_port = 7431")
        } else if cfg!(not(target_os = "linux")) {
            Some(
                "needs Linux, because the owner of a connection cannot be determined on this system: remove it, and \
                 let clients send a token",
            )
        } else {
            None
        };
        if let Some(message) = message {
            fields.problem(open_at, "ui_port_without_token_for_this_user", message.into());
        }
    }
    Ports {
        ui: ui.map(|(_, port)| port),
        remote: remote.map(|(_, port)| port),
        ui_without_token_for_this_user: open == Some(true),
    }
}

fn preset_names() -> Vec<&'static str> {
    presets::presets().iter().map(|preset| preset.name).collect()
}

#[cfg(test)]
mod tests;
