//! All counters, gauges and histograms. Every module may count; only `/metrics` reads them.
//!
//! A metric counted for each event, write or byte is an atomic of its own. A metric with labels is looked up where its
//! subject begins (a subscription, a session's task), not for each event.

pub mod spans;

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Instant;

use prometheus::core::Collector;
use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

/// Maximum number of runtimes with a label of their own. Further ones share [`OTHERS`], so the number of series is bounded.
pub const RUNTIMES_MAX: usize = 64;
/// The label of the runtimes beyond [`RUNTIMES_MAX`].
pub const OTHERS: &str = "(others)";

/// A kind of subscriber of the log: the label in `plexus_subscribers`. A frontend cannot follow the log without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscriber {
    /// `/v1/ws`, in the native protocol.
    WebSocket,
    /// `/v1/ws`, in the UI protocol.
    Ui,
    /// `/v1/events` and `/v1/sessions/{id}/events` as a stream.
    Sse,
    /// Returns the routes of `Sse` as a long poll.
    Poll,
    /// `/acp`, which `plexus bridge acp` uses too.
    Acp,
    /// `/ag-ui`.
    AgUi,
    /// A runtime served as a Gemini UI.
    Mirror,
    /// The gateway's own notifications.
    Notifications,
}

impl Subscriber {
    /// All variants.
    pub const ALL: [Self; 8] =
        [Self::WebSocket, Self::Ui, Self::Sse, Self::Poll, Self::Acp, Self::AgUi, Self::Mirror, Self::Notifications];

    /// Returns the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WebSocket => "ws",
            Self::Ui => "ui",
            Self::Sse => "sse",
            Self::Poll => "poll",
            Self::Acp => "acp",
            Self::AgUi => "ag-ui",
            Self::Mirror => "mirror",
            Self::Notifications => "notifications",
        }
    }

    /// Counts one subscriber until the returned value is dropped.
    pub fn count(self) -> Subscribed {
        let gauge = metrics().subscribers.with_label_values(&[self.as_str()]);
        gauge.inc();
        Subscribed(gauge)
    }
}

/// A subscription that is counted until it is dropped.
#[derive(Debug)]
pub struct Subscribed(IntGauge);

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A metric in the form of the list in `docs/metrics.md`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Family {
    /// The metric's name.
    pub name: String,
    /// The type: `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// The description.
    pub help: String,
}

/// Makes metrics and registers them. The names are constants of this crate: an invalid or duplicate one fails the first test.
#[derive(Default)]
struct Maker {
    registry: Registry,
    families: Vec<Family>,
}

impl Maker {
    #[allow(clippy::expect_used, reason = "the names and labels are constants")]
    fn add<C: Collector + Clone + 'static>(&mut self, kind: &'static str, made: prometheus::Result<C>) -> C {
        let metric = made.expect("a well-formed metric");
        for desc in metric.desc() {
            let labels = desc.variable_labels.clone();
            self.families.push(Family { name: desc.fq_name.clone(), kind, labels, help: desc.help.clone() });
        }
        self.registry.register(Box::new(metric.clone())).expect("a metric of its own name");
        metric
    }

    fn counter(&mut self, name: &str, help: &str) -> IntCounter {
        self.add("counter", IntCounter::new(name, help))
    }

    fn counters(&mut self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.add("counter", IntCounterVec::new(Opts::new(name, help), labels))
    }

    fn gauge(&mut self, name: &str, help: &str) -> IntGauge {
        self.add("gauge", IntGauge::new(name, help))
    }

    fn gauges(&mut self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.add("gauge", IntGaugeVec::new(Opts::new(name, help), labels))
    }

    fn histogram(&mut self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        self.add("histogram", Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec())))
    }

    fn histograms(&mut self, name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
        self.add("histogram", HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels))
    }
}

/// The metrics that are updated at each occurrence.
pub struct Metrics {
    registry: Registry,
    families: Vec<Family>,
    /// The runtimes that have a label of their own.
    runtimes: Mutex<BTreeSet<String>>,
    /// Number of stored events.
    pub events: IntCounter,
    /// Size of the stored events, in bytes.
    pub event_bytes: IntCounter,
    /// Number of events of each runtime's sessions.
    pub runtime_events: IntCounterVec,
    /// Number of live subscribers: see [`Subscriber`].
    pub subscribers: IntGaugeVec,
    /// Number of subscribers that read from the store because they fell behind the hot tail.
    pub lagging: IntGauge,
    /// Number of clients whose connections were closed because they made no progress.
    pub stalled: IntCounter,
    /// Number of attaches by verdict: `ok`, `gap`, `reset`, `ahead`.
    pub attaches: IntCounterVec,
    /// Seconds from receiving an event to writing it to its last socket.
    pub delivery: Histogram,
    /// Seconds from receiving an answer to passing it to the runtime.
    pub answer_delivery: HistogramVec,
    /// Seconds from passing a prompt to the runtime to its first output.
    pub first_chunk: HistogramVec,
    /// Seconds from opening a request to its end.
    pub request_wait: Histogram,
    /// Number of ended requests, by state.
    pub requests: IntCounterVec,
    /// Number of answers to requests that another client had answered.
    pub double_answers: IntCounter,
    /// Number of responses of clients that match no open call, or that were refused.
    pub stray_answers: IntCounter,
    /// Seconds of one group commit.
    pub store_commit: Histogram,
    /// Number of events in one group commit.
    pub store_group: Histogram,
    /// Number of failed commits.
    pub store_failures: IntCounter,
    /// Number of requests over HTTP.
    pub http: IntCounterVec,
    /// Seconds until a request over HTTP had the head of its response.
    pub http_duration: HistogramVec,
    /// Number of attempts to notify, by kind of channel (`push` for devices, else the configured one) and outcome.
    pub notifications: IntCounterVec,
    /// Number of notifications that wait to be sent.
    pub notifications_waiting: IntGauge,
    /// Number of open connections.
    pub connections: IntGauge,
    /// The time when the certificate of the TLS listener expires, in seconds since the Unix epoch.
    pub certificate_ends: IntGauge,
    /// Number of exits of runtimes.
    pub runtime_exits: IntCounterVec,
}

/// Returns the process's metrics.
pub fn metrics() -> &'static Metrics {
    static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);
    &METRICS
}

impl Metrics {
    fn new() -> Self {
        let commits = [20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 50e-3, 0.25, 1.0];
        let waits = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0, 28800.0];
        let quick = [100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 1.0, 5.0];
        let models = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0];
        let pages = [1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];
        let mut make = Maker::default();
        let build = make.gauges("plexus_build_info", "Always 1; see the labels", &["version", "os", "arch"]);
        build.with_label_values(&[env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH]).set(1);
        let all = Self {
            events: make.counter("plexus_events_total", "Events stored"),
            event_bytes: make.counter("plexus_event_bytes_total", "Bytes of events stored"),
            runtime_events: make.counters(
                "plexus_runtime_events_total",
                "Events stored for a runtime's sessions",
                &["runtime"],
            ),
            subscribers: make.gauges("plexus_subscribers", "Subscribers of the log by frontend", &["transport"]),
            lagging: make.gauge("plexus_subscribers_lagging", "Subscribers that read from the store"),
            stalled: make.counter("plexus_clients_stalled_total", "Clients closed because they made no progress"),
            attaches: make.counters(
                "plexus_attaches_total",
                "Attaches by result (after gap, reset and ahead the client has missed events)",
                &["resume"],
            ),
            delivery: make.histogram(
                "plexus_event_delivery_seconds",
                "Time from receiving an event until it was written to the last of its sockets; for each round of \
                 writing, of the event that waited longest",
                &quick,
            ),
            answer_delivery: make.histograms(
                "plexus_answer_delivery_seconds",
                "Time from receiving an answer until it was committed and passed to the agent's stdin or endpoint",
                &["runtime"],
                &quick,
            ),
            first_chunk: make.histograms(
                "plexus_prompt_first_chunk_seconds",
                "Time from passing a prompt to the agent until its first message, thought or tool call",
                &["runtime"],
                &models,
            ),
            request_wait: make.histogram(
                "plexus_request_wait_seconds",
                "Time from opening a request until it was closed",
                &waits,
            ),
            requests: make.counters("plexus_requests_total", "Closed requests by state", &["state"]),
            double_answers: make.counter("plexus_double_answers_total", "Answers that arrived after another client's"),
            stray_answers: make.counter(
                "plexus_stray_answers_total",
                "Responses of clients to unknown requests, and responses that were not accepted",
            ),
            store_commit: make.histogram("plexus_store_commit_seconds", "Duration of a group commit", &commits),
            store_group: make.histogram(
                "plexus_store_group_events",
                "Events in a group commit",
                &[1.0, 2.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0],
            ),
            store_failures: make.counter("plexus_store_failures_total", "Commits that failed"),
            http: make.counters(
                "plexus_http_requests_total",
                "HTTP requests by route (its pattern, never the path) and status class",
                &["method", "route", "class"],
            ),
            http_duration: make.histograms(
                "plexus_http_request_duration_seconds",
                "Time until the head of an HTTP response was sent, including the waiting time of long polls",
                &["route"],
                &pages,
            ),
            notifications: make.counters(
                "plexus_notifications_total",
                "Notification attempts by channel and outcome (sent; again: will be retried; refused, given_up, gone, dropped: will not)",
                &["way", "outcome"],
            ),
            notifications_waiting: make.gauge("plexus_notifications_waiting", "Notifications waiting to be sent"),
            connections: make.gauge("plexus_connections", "Open connections"),
            certificate_ends: make.gauge(
                "plexus_tls_certificate_expiry_timestamp_seconds",
                "Expiry time of the certificate that the TLS listener serves; 0 without one",
            ),
            runtime_exits: make.counters("plexus_runtime_exits_total", "Runtimes that exited", &["runtime"]),
            runtimes: Mutex::default(),
            registry: make.registry,
            families: make.families,
        };
        // A frontend without subscribers is 0, not absent.
        for way in Subscriber::ALL {
            all.subscribers.with_label_values(&[way.as_str()]).set(0);
        }
        #[cfg(target_os = "linux")]
        {
            let process = prometheus::process_collector::ProcessCollector::for_self();
            // The library alone uses these names.
            let _ = all.registry.register(Box::new(process));
        }
        all
    }

    /// Returns the label of a runtime: its name, or [`OTHERS`] beyond [`RUNTIMES_MAX`] names.
    pub fn runtime_label<'a>(&self, runtime: &'a str) -> &'a str {
        let mut known = self.runtimes.lock();
        if known.contains(runtime) || known.len() < RUNTIMES_MAX && known.insert(runtime.to_owned()) {
            return runtime;
        }
        OTHERS
    }

    /// Returns all metrics by name, without the library's `process_*`.
    pub fn families(&self) -> Vec<Family> {
        let mut all = self.families.clone();
        all.extend(StateGauges::default().make.families);
        all.sort();
        all
    }

    /// Records that an answer received at `came` was passed to its runtime.
    pub fn answered(&self, runtime: &str, came: Instant) {
        let label = self.runtime_label(runtime);
        self.answer_delivery.with_label_values(&[label]).observe(came.elapsed().as_secs_f64());
    }

    /// Returns all metrics in Prometheus' text format.
    pub fn text(&self) -> String {
        encode(&self.registry)
    }
}

fn encode(registry: &Registry) -> String {
    let mut text = Vec::new();
    // Writing to memory cannot fail; an error would result in an empty page.
    let _ = TextEncoder::new().encode(&registry.gather(), &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Gauges of the current state. They are computed for each scrape, so that they cannot drift from it.
pub struct StateGauges {
    make: Maker,
    /// Number of runtimes, by state.
    pub runtimes: IntGaugeVec,
    /// Number of sessions, by runtime and state.
    pub sessions: IntGaugeVec,
    /// Number of runs that have not ended, by runtime and status.
    pub runs: IntGaugeVec,
    /// Number of requests that wait for users, by runtime and risk.
    pub requests: IntGaugeVec,
}

impl Default for StateGauges {
    fn default() -> Self {
        let mut make = Maker::default();
        let runtimes = make.gauges("plexus_runtimes", "Runtimes by state", &["state"]);
        let sessions = make.gauges("plexus_sessions", "Sessions by runtime and state", &["runtime", "state"]);
        let runs = make.gauges("plexus_runs", "Unfinished runs by runtime and status", &["runtime", "status"]);
        let requests = make.gauges("plexus_requests_open", "Open requests by runtime and risk", &["runtime", "risk"]);
        Self { make, runtimes, sessions, runs, requests }
    }
}

impl StateGauges {
    /// Returns all gauges in Prometheus' text format.
    pub fn text(&self) -> String {
        encode(&self.make.registry)
    }
}
