//! Counters and gauges, all of them here. A leaf: every floor may count, none may read but `/metrics`.

use std::sync::LazyLock;

use prometheus::{
    Encoder, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

/// Everything that is counted.
pub struct Metrics {
    registry: Registry,
    /// Events kept.
    pub events: IntCounter,
    /// Bytes of events kept.
    pub event_bytes: IntCounter,
    /// Live subscribers, by transport: `ws`, `sse`, `poll`.
    pub subscribers: IntGaugeVec,
    /// Subscribers that read from the store because they fell behind the hot tail.
    pub lagging: IntGauge,
    /// Clients closed because they made no progress.
    pub stalled: IntCounter,
    /// Attaches by verdict: `ok`, `gap`, `reset`, `ahead`.
    pub attaches: IntCounterVec,
    /// Seconds from a request's opening to its end.
    pub request_wait: Histogram,
    /// Requests that ended, by state.
    pub requests: IntCounterVec,
    /// Answers that came after somebody else's.
    pub double_answers: IntCounter,
    /// Responses of clients to nothing that was asked, or that were not taken.
    pub stray_answers: IntCounter,
    /// Seconds of one group commit.
    pub store_commit: Histogram,
    /// Events in one group commit.
    pub store_group: Histogram,
    /// Commits that failed.
    pub store_failures: IntCounter,
    /// Requests over HTTP, by status class.
    pub http: IntCounterVec,
    /// Attempts to notify, by the way (`push`, `webhook`, `ntfy`) and how it went.
    pub notifications: IntCounterVec,
    /// Notifications that wait to be sent.
    pub notifications_waiting: IntGauge,
    /// Open connections.
    pub connections: IntGauge,
    /// Runtimes by state.
    pub runtime_exits: IntCounter,
}

/// The one set of them.
pub fn metrics() -> &'static Metrics {
    static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);
    &METRICS
}

impl Metrics {
    fn new() -> Self {
        let registry = Registry::new();
        macro_rules! made {
            ($metric:expr) => {{
                // The names are constants of this file: a wrong or a doubled one fails the first test that runs.
                #[allow(clippy::expect_used)]
                let metric = $metric.expect("a well-formed metric");
                #[allow(clippy::expect_used)]
                registry.register(Box::new(metric.clone())).expect("a metric of its own name");
                metric
            }};
        }
        let seconds = |name: &str, help: &str, buckets: &[f64]| {
            Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec()))
        };
        let commits = [20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 50e-3, 0.25, 1.0];
        let waits = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0, 28800.0];
        Self {
            events: made!(IntCounter::new("plexus_events_total", "Events kept")),
            event_bytes: made!(IntCounter::new("plexus_event_bytes_total", "Bytes of events kept")),
            subscribers: made!(IntGaugeVec::new(
                Opts::new("plexus_subscribers", "Live subscribers by transport"),
                &["transport"]
            )),
            lagging: made!(IntGauge::new("plexus_subscribers_lagging", "Subscribers that read from the store")),
            stalled: made!(IntCounter::new(
                "plexus_clients_stalled_total",
                "Clients closed because they made no progress"
            )),
            attaches: made!(IntCounterVec::new(
                Opts::new(
                    "plexus_attaches_total",
                    "Attaches by verdict (gap, reset and ahead are the ones that lost something)"
                ),
                &["resume"]
            )),
            request_wait: made!(seconds("plexus_request_wait_seconds", "From a request's opening to its end", &waits)),
            requests: made!(IntCounterVec::new(
                Opts::new("plexus_requests_total", "Requests that ended, by state"),
                &["state"]
            )),
            double_answers: made!(IntCounter::new("plexus_double_answers_total", "Answers after somebody else's")),
            stray_answers: made!(IntCounter::new(
                "plexus_stray_answers_total",
                "Responses of clients to nothing that was asked, or that were not taken"
            )),
            store_commit: made!(seconds("plexus_store_commit_seconds", "One group commit", &commits)),
            store_group: made!(seconds(
                "plexus_store_group_events",
                "Events in one group commit",
                &[1.0, 2.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0]
            )),
            store_failures: made!(IntCounter::new("plexus_store_failures_total", "Commits that failed")),
            http: made!(IntCounterVec::new(
                Opts::new("plexus_http_requests_total", "HTTP requests by status class"),
                &["class"]
            )),
            notifications: made!(IntCounterVec::new(
                Opts::new(
                    "plexus_notifications_total",
                    "Attempts to notify, by way and outcome (sent; again: it will be repeated; refused, given_up, gone, dropped: it will not)"
                ),
                &["way", "outcome"]
            )),
            notifications_waiting: made!(IntGauge::new(
                "plexus_notifications_waiting",
                "Notifications that wait to be sent"
            )),
            connections: made!(IntGauge::new("plexus_connections", "Open connections")),
            runtime_exits: made!(IntCounter::new("plexus_runtime_exits_total", "Runtimes that exited")),
            registry,
        }
    }

    /// All of them in Prometheus' text format.
    pub fn text(&self) -> String {
        let mut text = Vec::new();
        // Writing to memory cannot fail; an empty page would show if it did.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        String::from_utf8(text).unwrap_or_default()
    }
}
