//! Shared terminals in a real browser (`tests/web/terminals.test.mjs`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::process::Command;

use common::browser::play;
use common::gateway::{Gateway, exe};
use plexus_terminal::folder;
use serde_json::json;

/// Output that would act on a terminal: a clipboard, a question, a window, and a link that is no page.
const HOSTILE: &str = r"printf '\033]0;a\033\\\033]2;atitle <b>\007\033]52;c;ZXZpbA==\007\033[6n\033[c\033[8;5;5t\033[5i'
printf '\033]8;;javascript:alert(1)\007a link\033]8;;\007\033P$qm\033\\\033]777;notify;a;b\007\n<img src=x onerror=alert(2)>\n'
printf 'the end of it\n'; exec sleep 1000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web_terminals_in_a_browser() {
    let gateway = Gateway::start("").await;
    let start = |command: &[&str]| {
        let out = Command::new(exe())
            .args(["term", "--detached", "--"])
            .args(command)
            .env("PLEXUS_HOME", &gateway.home)
            .env("PS1", "$ ")
            .output()
            .unwrap();
        assert!(out.status.success(), "{out:?}");
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    let shell = start(&["bash", "--norc"]);
    let hostile = start(&["sh", "-c", HOSTILE]);
    let (status, made) =
        gateway.post("/v1/codes", json!({ "scopes": ["watch", "prompt", "approve", "admin", "type"] })).await;
    assert_eq!(status, 201, "{made}");
    let code = made["code"].as_str().unwrap();
    let more = [("PLEXUS_CODE", code), ("PLEXUS_SHELL", &shell), ("PLEXUS_HOSTILE", &hostile)];
    play("terminals.test.mjs", &gateway, &more).await;
    let dir = gateway.home.join(folder::TERMINALS);
    for one in folder::list(&dir) {
        let _ = plexus_terminal::attach::kill(&dir, &one.terminal_id);
    }
}
