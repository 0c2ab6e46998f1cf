//! The gateway's token is only in its file: not in an argument, an environment, a log, a core dump, nor within reach of an agent.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::gateway::{Gateway, family};

#[tokio::test]
async fn token_is_in_no_argument_environment_or_log() {
    let gateway = Gateway::demo().await;
    let session = gateway.session("demo").await;
    let run = gateway.prompt(&session, "echo hello").await;
    gateway.until_ended(&session, &run).await;
    // A refused token, a wrong path and a query are what a log could contain.
    let _ = gateway.http.get(format!("{}/v1/sessions?token={}", gateway.url, gateway.token)).send().await;
    let _ = gateway.get(&format!("/no/such/{}", gateway.token)).await;
    let below = family(gateway.pid());
    assert!(below.len() >= 2, "the holder and the agent: {below:?}");
    // A `git` that looks at the session's folder may end meanwhile.
    let of = |pid: u32, file: &str| std::fs::read(format!("/proc/{pid}/{file}")).ok();
    for pid in below.iter().copied().chain([gateway.pid()]) {
        for file in ["cmdline", "environ"] {
            let bytes = of(pid, file).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&bytes).contains(&gateway.token), "{file} of {pid}");
        }
    }
    assert!(!gateway.stderr().contains(&gateway.token));
    let mut seen = 0;
    for agent in &below {
        let Some(environ) = of(*agent, "environ") else { continue };
        seen += 1;
        let environ = String::from_utf8_lossy(&environ).into_owned();
        assert!(!environ.split('\0').any(|var| var.starts_with("PLEXUS_")), "{environ}");
        // No descriptor of the gateway is open in an agent.
        for fd in std::fs::read_dir(format!("/proc/{agent}/fd")).into_iter().flatten().flatten() {
            let target = std::fs::read_link(fd.path()).unwrap_or_default();
            let target = target.to_string_lossy();
            assert!(!target.contains("plexus.db") && !target.contains("/home/token"), "{agent} holds {target}");
        }
    }
    assert!(seen >= 2, "the holder and the agent are there: {below:?}");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", gateway.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "no core dump holds what agents printed: {core}");
}
