//! Metrics: the real output of `/metrics`, its documentation, the dashboard and the alert rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::gateway::{Gateway, demo};
use plexus::metrics::metrics;
use serde_json::{Value, json};

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap()
}

async fn scrape(gateway: &Gateway) -> String {
    let reply = gateway.request("GET", "/metrics").send().await.unwrap();
    assert_eq!(reply.status(), 200);
    reply.text().await.unwrap()
}

/// The value of a series, written as in the output.
fn value(text: &str, series: &str) -> f64 {
    let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{series} is not in\n{text}")).parse().unwrap()
}

/// Runs promtool, which `scripts/test` installs; `Err` has its complaints.
fn promtool(args: &[&str], stdin: &str) -> Result<(), String> {
    use std::io::Write as _;
    let mut command = Command::new("promtool");
    command.args(args).current_dir(file("deploy")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool, of Debian's package prometheus");
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    if out.status.success() { Ok(()) } else { Err(said) }
}

/// The rows of docs/metrics.md: name, type and labels.
fn documented() -> BTreeMap<String, (String, String, String)> {
    let page = read("docs/metrics.md");
    let (_, rows) = page.split_once("## All metrics").expect("the table has its heading");
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    let rows = rows.lines().filter(|line| line.starts_with("| `")).map(cells);
    rows.map(|row| (row[0].trim_matches('`').to_owned(), (row[1].clone(), row[2].clone(), row[3].clone()))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_show_what_waits_what_runs_and_how_long_it_takes() {
    let gateway = Gateway::start(&demo()).await;
    let session = gateway.session("demo").await;
    let mut ws = gateway.ws().await;
    ws.call("session.attach", json!({ "session_id": session })).await.unwrap();
    let run = gateway.prompt(&session, "ask").await;
    let request = gateway.open_request(&session).await;

    let waits = scrape(&gateway).await;
    let risk = request["risk"].as_str().unwrap();
    assert_eq!(value(&waits, &format!("plexus_requests_open{{risk=\"{risk}\",runtime=\"demo\"}}")), 1.0);
    assert_eq!(value(&waits, "plexus_runs{runtime=\"demo\",status=\"awaiting_ui\"}"), 1.0);
    assert_eq!(value(&waits, "plexus_sessions{runtime=\"demo\",state=\"waiting\"}"), 1.0);
    assert_eq!(value(&waits, "plexus_runtimes{state=\"ready\"}"), 1.0);
    assert_eq!(value(&waits, "plexus_runtimes{state=\"exited\"}"), 0.0);
    assert_eq!(value(&waits, "plexus_subscribers{transport=\"ws\"}"), 1.0);
    assert_eq!(value(&waits, "plexus_subscribers{transport=\"mirror\"}"), 0.0);
    assert_eq!(value(&waits, "plexus_subscribers{transport=\"notifications\"}"), 1.0);

    let (status, _) = gateway.choose(&request, &Gateway::option(&request, "allow_once")).await;
    assert_eq!(status, 200);
    gateway.until_ended(&session, &run).await;
    drop(ws);

    let text = scrape(&gateway).await;
    assert_eq!(value(&text, "plexus_prompt_first_chunk_seconds_count{runtime=\"demo\"}"), 1.0);
    assert_eq!(value(&text, "plexus_answer_delivery_seconds_count{runtime=\"demo\"}"), 1.0);
    assert!(value(&text, "plexus_event_delivery_seconds_count") >= 1.0);
    assert!(value(&text, "plexus_runtime_events_total{runtime=\"demo\"}") >= 5.0);
    assert_eq!(value(&text, &format!("plexus_requests_open{{risk=\"{risk}\",runtime=\"demo\"}}")), 0.0);
    let version = env!("CARGO_PKG_VERSION");
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    assert_eq!(value(&text, &format!("plexus_build_info{{arch=\"{arch}\",os=\"{os}\",version=\"{version}\"}}")), 1.0);

    // The label is the pattern of a route, never the path of a client.
    gateway.request("BREW", "/v1/coffee").send().await.unwrap();
    let text = scrape(&gateway).await;
    let prompts = "plexus_http_requests_total{class=\"2xx\",method=\"POST\",route=\"/v1/sessions/{id}/prompt\"}";
    assert_eq!(value(&text, prompts), 1.0);
    assert!(value(&text, "plexus_http_request_duration_seconds_count{route=\"/metrics\"}") >= 2.0);
    assert!(!text.contains(&session) && !text.contains("coffee") && !text.contains("BREW"), "{text}");

    // Every family in the output is documented with its type.
    let documented = documented();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let row = documented.get(name).unwrap_or_else(|| panic!("{name} is not in docs/metrics.md"));
        assert_eq!(row.0, kind, "{name}");
        assert!(text.contains(&format!("# HELP {name} ")), "{name}");
    }
    #[cfg(target_os = "linux")]
    assert!(value(&text, "process_resident_memory_bytes") > 1e6 && value(&text, "process_open_fds") > 1.0);
    promtool(&["check", "metrics"], &text).unwrap();
    assert!(promtool(&["check", "metrics"], "# TYPE bad_total gauge\nbad_total 1\n").is_err(), "promtool looks");
}

#[test]
fn metrics_are_documented_in_the_words_of_their_output() {
    let documented = documented();
    let wanted: Vec<String> = metrics()
        .families()
        .into_iter()
        .map(|one| format!("| `{}` | {} | {} | {} |", one.name, one.kind, one.labels.join(", "), one.help))
        .collect();
    let text = read("docs/metrics.md");
    let missing: Vec<_> = wanted.iter().filter(|row| !text.contains(row.as_str())).cloned().collect();
    assert!(missing.is_empty(), "docs/metrics.md lacks these rows:\n{}", missing.join("\n"));
    let known: BTreeSet<String> = metrics().families().into_iter().map(|one| one.name).collect();
    let elsewhere = |name: &str| name.starts_with("process_") || name.starts_with("plexus_ledger_");
    for name in documented.keys() {
        assert!(known.contains(name) || elsewhere(name), "docs/metrics.md has {name}, which there is not");
    }
}

/// The names of metrics in a query.
fn named(query: &str) -> BTreeSet<String> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("plexus_") || word.starts_with("process_")).map(str::to_owned).collect()
}

#[test]
fn dashboard_and_rules_name_existing_metrics_and_are_valid() {
    let documented = documented();
    let known = |name: &str| {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        documented.contains_key(name)
            || base.is_some_and(|base| documented.get(base).is_some_and(|row| row.0 == "histogram"))
    };
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana-dashboard.json")).unwrap();
    let mut queries = vec![dashboard["templating"]["list"][1]["query"].as_str().unwrap().to_owned()];
    for panel in dashboard["panels"].as_array().unwrap() {
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{panel}");
        queries.extend(targets.iter().map(|target| target["expr"].as_str().unwrap().to_owned()));
    }
    let asked: BTreeSet<String> = queries.iter().flat_map(|query| named(query)).collect();
    let alerts = read("deploy/prometheus-rules.yml");
    let exprs: Vec<&str> = alerts.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    let alerted = exprs.iter().flat_map(|query| named(query));
    for name in asked.iter().cloned().chain(alerted) {
        assert!(known(&name), "{name} is no metric");
    }
    assert!(asked.len() > 20 && exprs.len() > 5);
    assert!(!known("plexus_no_such_total") && !known("plexus_events_total_bucket"), "the check looks");

    // Every query of the dashboard is valid for Prometheus, with Grafana's variables filled in.
    let rules: Vec<Value> = queries[1..]
        .iter()
        .map(|query| query.replace("$__rate_interval", "1m").replace("$instance", ".*"))
        .map(|expr| json!({ "record": "x", "expr": expr }))
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dashboard.yml");
    let labelled: Vec<Value> = rules
        .into_iter()
        .enumerate()
        .map(|(n, mut rule)| {
            rule["record"] = json!(format!("x{n}"));
            rule
        })
        .collect();
    std::fs::write(&path, json!({ "groups": [{ "name": "x", "rules": labelled }] }).to_string()).unwrap();
    promtool(&["check", "rules", path.to_str().unwrap()], "").unwrap();
    promtool(&["check", "rules", "prometheus-rules.yml"], "").unwrap();
    promtool(&["test", "rules", "prometheus-rules.test.yml"], "").unwrap();
    let [alerts, tests] = ["prometheus-rules.yml", "prometheus-rules.test.yml"]
        .map(|name| std::fs::read_to_string(file("deploy").join(name)).unwrap());
    for alert in alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert} has no test in prometheus-rules.test.yml");
    }
    // With a token file, which is not in the repository.
    for name in ["prometheus.yml", "prometheus-rules.yml"] {
        std::fs::copy(file("deploy").join(name), dir.path().join(name)).unwrap();
    }
    std::fs::write(dir.path().join("plexus-token"), "x").unwrap();
    promtool(&["check", "config", dir.path().join("prometheus.yml").to_str().unwrap()], "").unwrap();
}
