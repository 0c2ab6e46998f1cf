//! New sessions: an agent is started for one if need be, and what fails leaves nothing.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use plexus_client::Client;
use serde_json::{Value, json};

use crate::common::gateway::{Gateway, PATIENCE, alive, demo, exe};
use crate::common::moments::until_so;

/// A client of its own, whose calls can be dropped and repeated.
fn client(gateway: &Gateway) -> Client {
    Client::new(&gateway.url, &gateway.token)
}

async fn runtimes(gateway: &Gateway) -> Vec<Value> {
    gateway.get("/v1/runtimes").await.1["runtimes"].as_array().unwrap().clone()
}

/// A program of this text.
fn script(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_session_starts_its_agent_once() {
    let gateway = Gateway::start("").await;
    let work = tempfile::tempdir().unwrap();
    let wish = json!({ "start": { "preset": "demo", "outlive": false }, "cwd": work.path() });
    let client = client(&gateway);
    let open = || client.http("POST", "/v1/sessions", Some(&wish), Some("pressed-twice"));
    let (one, two) = tokio::join!(open(), open());
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.status, two.status), (201, 201), "{} {}", one.text, two.text);
    assert_eq!(one.json()["session_id"], two.json()["session_id"]);
    assert_eq!(one.json()["cwd"], json!(work.path()));
    let other = json!({ "start": { "preset": "demo" }, "cwd": "/" });
    let reused = client.http("POST", "/v1/sessions", Some(&other), Some("pressed-twice")).await.unwrap();
    assert_eq!((reused.status, &reused.json()["code"]), (422, &json!("idempotency_key_reused")));

    // Another folder: another session of the agent that runs.
    let (status, made) = gateway.post("/v1/sessions", other).await;
    assert_eq!((status, &made["runtime_id"], &made["cwd"]), (201, &json!("demo"), &json!("/")), "{made}");
    assert_eq!(runtimes(&gateway).await.len(), 1);
    let (status, both) =
        gateway.post("/v1/sessions", json!({ "runtime_id": "demo", "start": { "preset": "demo" } })).await;
    assert_eq!((status, &both["code"]), (422, &json!("invalid")));

    let (_, all) = gateway.get("/v1/agents").await;
    let named = |name: &str| all["agents"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    assert_eq!((&named("demo")["installed"], &named("demo")["runtime_id"]), (&json!(true), &json!("demo")));
    assert!(named("kimi")["install"].as_str().unwrap().contains("kimi-cli"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_start_leaves_nothing_and_says_what_the_agent_said() {
    let gateway = Gateway::start("").await;
    let dir = tempfile::tempdir().unwrap();
    let dies = script(dir.path(), "dies", "echo 'not signed in: run dies login' >&2\nexit 3");
    let start = |command: &Path| json!({ "start": { "dialect": "acp", "command": [command] }, "cwd": dir.path() });
    for _ in 0..2 {
        let (status, why) = gateway.post("/v1/sessions", start(&dies)).await;
        assert_eq!((status, &why["code"]), (502, &json!("runtime_not_started")), "{why}");
        let detail = why["detail"].as_str().unwrap();
        assert!(detail.starts_with("dies did not start: ") && detail.contains('3'), "the name is free again: {detail}");
        assert!(why["stderr"].as_str().unwrap().contains("not signed in: run dies login"), "{why}");
        assert_eq!(runtimes(&gateway).await, Vec::<Value>::new());
    }
    // Folder and program are looked for before anything is started.
    let (status, why) = gateway.post("/v1/sessions", start(&dir.path().join("none"))).await;
    assert_eq!(status, 422, "{why}");
    assert!(why["detail"].as_str().unwrap().ends_with("none does not exist"), "{why}");
    let nowhere = json!({ "preset": "demo", "cwd": dir.path().join("nowhere") });
    for (path, body) in [("/v1/sessions", json!({ "start": nowhere })), ("/v1/runtimes", nowhere.clone())] {
        let (status, why) = gateway.post(path, body).await;
        assert_eq!(status, 422, "{why}");
        assert!(why["detail"].as_str().unwrap().ends_with("nowhere does not exist"), "{why}");
    }
    assert_eq!(runtimes(&gateway).await, Vec::<Value>::new());
    assert_eq!(gateway.get("/v1/sessions").await.1["sessions"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abandoned_start_leaves_nothing() {
    let gateway = Gateway::start("").await;
    let dir = tempfile::tempdir().unwrap();
    let hangs = script(dir.path(), "hangs", "exec sleep 600");
    let wish = json!({ "start": { "dialect": "acp", "command": [hangs], "outlive": false }, "cwd": "/" });
    {
        let client = client(&gateway);
        let waits = client.http("POST", "/v1/sessions", Some(&wish), None);
        tokio::pin!(waits);
        let started = until_so("it is starting", async || runtimes(&gateway).await.len() == 1);
        tokio::select! {
            done = &mut waits => panic!("it hangs, and yet: {done:?}"),
            () = started => {}
        }
    }
    until_so("it is gone with its client", async || runtimes(&gateway).await.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folders_are_for_administrators_and_recent_ones_for_prompters() {
    let gateway = Gateway::start(&demo()).await;
    let dir = tempfile::tempdir().unwrap();
    for name in ["project/.git", "<b>evil", ".cache"] {
        std::fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    let project = dir.path().join("project");
    let (status, made) = gateway.post("/v1/sessions", json!({ "runtime_id": "demo", "cwd": project })).await;
    assert_eq!(status, 201, "{made}");
    let under = dir.path().display();
    let (status, all) = gateway.get(&format!("/v1/folders?under={under}/")).await;
    assert_eq!(status, 200, "{all}");
    let names: Vec<_> = all["folders"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["<b>evil", "project"]);
    assert_eq!((&all["folders"][1]["git"], &all["more"]), (&json!(true), &json!(false)));
    assert_eq!((&all["recent"][0]["path"], &all["recent"][0]["git"]), (&json!(project), &json!(true)));
    for (query, status, code) in [
        (format!("{under}/none"), 404, "folder_not_found"),
        ("relative".into(), 400, "bad_query"),
        ("/dev/null".into(), 404, "folder_not_found"),
    ] {
        let (got, why) = gateway.get(&format!("/v1/folders?under={query}")).await;
        assert_eq!((got, &why["code"]), (status, &json!(code)), "{why}");
    }
    // One that may prompt sees where sessions work, and nothing else of the machine.
    let (_, phone) = gateway.post("/v1/devices", json!({ "name": "phone", "scopes": ["watch", "prompt"] })).await;
    let client = Client::new(&gateway.url, phone["token"].as_str().unwrap());
    let seen = client.http("GET", "/v1/folders", None, None).await.unwrap().json();
    assert_eq!((&seen["folders"], seen.get("under"), &seen["recent"][0]["path"]), (&json!([]), None, &json!(project)));
    for path in ["/v1/folders?under=/", "/v1/agents"] {
        let refused = client.http("GET", path, None, None).await.unwrap();
        assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("scope_missing")), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_command_starts_the_agent_and_leaves_the_session_to_work() {
    let gateway = Gateway::start("").await;
    let dir = tempfile::tempdir().unwrap();
    let home = gateway.home.clone();
    let run = async |args: &[&str]| {
        let mut command = Command::new(exe());
        command.arg("new").args(args).current_dir(dir.path()).env("PLEXUS_HOME", &home).env("NO_COLOR", "1");
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    };
    let made = run(&["demo", "--title", "By hand", "echo", "from-the-shell"]).await;
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert_eq!(made.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&made.stderr));
    let id = said.lines().next().unwrap().to_owned();
    assert!(said.contains(&format!("plexus attach {id}")), "{said}");
    let (_, session) = gateway.get(&format!("/v1/sessions/{id}")).await;
    assert_eq!((&session["title"], &session["cwd"]), (&json!("By hand"), &json!(dir.path().canonicalize().unwrap())));
    until_so("the agent answers", async || {
        gateway.get(&format!("/v1/sessions/{id}/snapshot")).await.1["messages"].to_string().contains("from-the-shell")
    })
    .await;

    // The same agent again, as JSON.
    let made = run(&["demo", "--json", "--in", "/", "echo twice"]).await;
    let session: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!((&session["runtime_id"], &session["cwd"]), (&json!("demo"), &json!("/")));
    assert!(session["run_id"].as_str().is_some_and(|run| run.starts_with("r_")), "{session}");
    assert_eq!(runtimes(&gateway).await.len(), 1);

    let wrong = run(&["gemni", "x"]).await;
    let words = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(2), "{words}");
    assert!(words.contains("did you mean gemini?"), "{words}");
    assert_eq!(run(&["demo", "--in", "nowhere"]).await.status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_command_leaves_it_to_the_gateway_whether_an_agent_is_there() {
    let dir = tempfile::tempdir().unwrap();
    script(dir.path(), "gemini", &format!("exec {} agent demo", exe()));
    // The agent is on the gateway's PATH alone.
    let path = format!("{}:/usr/bin:/bin", dir.path().display());
    let gateway = Gateway::start_with(tempfile::tempdir().unwrap(), "", &[("PATH", &path)]).await;
    let home = gateway.home.clone();
    let run = async |args: &[&str]| {
        let mut command = Command::new(exe());
        command.arg("new").args(args).env("PLEXUS_HOME", &home).env("NO_COLOR", "1").env("PATH", "/usr/bin:/bin");
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    };
    let made = run(&["gemini", "--in", "/", "echo", "found"]).await;
    assert_eq!(made.status.code(), Some(0), "{}", String::from_utf8_lossy(&made.stderr));
    let missing = run(&["qwen", "--in", "/", "x"]).await;
    let words = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(missing.status.code() != Some(0) && words.contains("npm install -g @qwen-code/qwen-code"), "{words}");
}

/// A repository with one commit.
fn repository(path: &Path) {
    std::fs::create_dir_all(path).unwrap();
    std::fs::write(path.join("file"), "one\n").unwrap();
    for words in ["init --quiet -b main", "add .", "-c user.name=t -c user.email=t@example.org commit --quiet -m first"]
    {
        let done = Command::new("git").arg("-C").arg(path).args(words.split(' ')).output().unwrap();
        assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worktree_for_a_session_is_made_with_it_and_removed_on_request() {
    let gateway = Gateway::start(&demo()).await;
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    repository(&top.join("project"));
    let wish = |worktree: Value| json!({ "runtime_id": "demo", "cwd": top.join("project"), "worktree": worktree });
    let (status, made) = gateway.post("/v1/sessions", wish(json!({ "branch": "try/it" }))).await;
    assert_eq!(status, 201, "{made}");
    let path = top.join("project.worktrees/try/it");
    assert_eq!((&made["cwd"], &made["project"]["branch"]), (&json!(path), &json!("try/it")));
    assert!(path.join("file").exists());
    for (worktree, status, code) in [
        (json!({ "branch": "try/it" }), 409, "worktree_exists"),
        (json!({ "branch": "no good" }), 422, "bad_branch"),
        (json!({ "branch": "other", "base": "nowhere" }), 422, "bad_branch"),
    ] {
        let (got, why) = gateway.post("/v1/sessions", wish(worktree)).await;
        assert_eq!((got, &why["code"]), (status, &json!(code)), "{why}");
    }
    let outside = json!({ "runtime_id": "demo", "cwd": top, "worktree": { "branch": "x" } });
    let (status, why) = gateway.post("/v1/sessions", outside).await;
    assert_eq!((status, &why["code"]), (422, &json!("no_repository")), "{why}");
    // A session that cannot be opened takes its worktree with it.
    let fails = json!({ "start": { "dialect": "acp", "command": ["false"] }, "cwd": top.join("project"), "worktree": { "branch": "vain" } });
    assert_eq!(gateway.post("/v1/sessions", fails).await.0, 502);
    let listed = async || gateway.get("/v1/worktrees").await.1["worktrees"].as_array().unwrap().clone();
    until_so("the worktree made in vain is gone", async || listed().await.len() == 1).await;
    assert!(!top.join("project.worktrees/vain").exists());

    let one = listed().await.remove(0);
    assert_eq!(
        (&one["path"], &one["sessions"][0], &one["unsaved"]["changed"]),
        (&json!(path), &made["session_id"], &json!(0))
    );
    let remove = async |lost: Option<&Value>| {
        gateway.post("/v1/worktrees/remove", json!({ "path": path, "delete_branch": true, "lost": lost })).await
    };
    let (status, why) = remove(None).await;
    assert_eq!((status, &why["code"]), (409, &json!("worktree_in_use")), "{why}");
    let id = made["session_id"].as_str().unwrap();
    assert_eq!(gateway.patch(&format!("/v1/sessions/{id}"), json!({ "archived": true })).await.0, 200);
    std::fs::write(path.join("new"), "").unwrap();
    let (status, why) = remove(None).await;
    assert_eq!(
        (status, &why["code"], &why["unsaved"]["files"]),
        (409, &json!("worktree_unsaved"), &json!(["new"])),
        "{why}"
    );
    assert_eq!(remove(Some(&why["unsaved"]["digest"])).await.0, 204);
    assert!(!top.join("project.worktrees").exists());
    // Only for administrators, as any folder outside of the agent's own.
    let (_, phone) = gateway.post("/v1/devices", json!({ "name": "phone", "scopes": ["watch", "prompt"] })).await;
    let client = Client::new(&gateway.url, phone["token"].as_str().unwrap());
    let wish = wish(json!({ "branch": "phone" }));
    let refused = client.http("POST", "/v1/sessions", Some(&wish), None).await.unwrap();
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("scope_missing")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_command_makes_worktrees_and_continues_conversations() {
    let gateway = Gateway::start("").await;
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    repository(&top.join("project"));
    let (home, project) = (gateway.home.clone(), top.join("project"));
    let run = async |args: &[&str]| {
        let mut command = Command::new(exe());
        command.args(args).current_dir(&project).env("PLEXUS_HOME", &home).env("NO_COLOR", "1");
        let done = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (done.status.code(), words(&done.stdout), words(&done.stderr))
    };
    let (code, said, why) = run(&["new", "demo", "--worktree", "by-hand", "--title", "First"]).await;
    assert_eq!(code, Some(0), "{said}{why}");
    assert!(said.contains("project.worktrees/by-hand"), "{said}");
    let id = said.lines().next().unwrap().to_owned();
    let (_, said, _) = run(&["worktrees"]).await;
    assert!(said.contains("by-hand") && said.contains("clean") && said.contains(&id), "{said}");
    let (code, _, why) = run(&["worktrees", "remove", "by-hand"]).await;
    assert_eq!(code, Some(1), "{why}");
    assert!(why.contains(&id), "{why}");
    assert_eq!(run(&["archive", &id]).await.0, Some(0));
    std::fs::write(top.join("project.worktrees/by-hand/new"), "").unwrap();
    let (code, said, why) = run(&["worktrees", "remove", "by-hand"]).await;
    assert_eq!(code, Some(1), "{said}{why}");
    assert!(said.contains("changed  new") && why.contains("--force"), "{said}{why}");
    let (code, said, why) = run(&["worktrees", "remove", "by-hand", "--force"]).await;
    assert_eq!(code, Some(0), "{why}");
    assert!(said.contains("the branch by-hand is kept"), "{said}");

    // A conversation of the folder, when the agent does not even run.
    let (code, said, why) = run(&["new", "demo", "echo", "remember-me"]).await;
    assert_eq!(code, Some(0), "{said}{why}");
    let first = said.lines().next().unwrap().to_owned();
    let (code, said, why) = run(&["new", "demo", "--continue", "nothing like this"]).await;
    assert_eq!(code, Some(1), "{said}{why}");
    assert!(why.contains("plexus ls --resumable demo"), "{why}");
    let (code, said, why) = run(&["new", "demo", "go on", "--continue"]).await;
    assert_eq!((code, said.lines().next()), (Some(0), Some(first.as_str())), "it is open already: {why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_command_sets_mode_and_model_before_the_prompt() {
    let gateway = Gateway::start("").await;
    let dir = tempfile::tempdir().unwrap();
    let home = gateway.home.clone();
    let run = async |args: &[&str]| {
        let mut command = Command::new(exe());
        command.arg("new").args(args).current_dir(dir.path()).env("PLEXUS_HOME", &home).env("NO_COLOR", "1");
        let done = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (done.status.code(), words(&done.stdout), words(&done.stderr))
    };
    let (code, said, why) = run(&["demo", "--mode", "auto", "echo", "in-auto"]).await;
    assert_eq!(code, Some(0), "{said}{why}");
    let id = said.lines().next().unwrap().to_owned();
    let snapshot = async || gateway.get(&format!("/v1/sessions/{id}/snapshot")).await.1;
    until_so("the agent answers", async || snapshot().await["messages"].to_string().contains("in-auto")).await;
    assert_eq!(snapshot().await["latest"]["current_mode_update"]["currentModeId"], "auto");
    let kinds: Vec<String> =
        gateway.events(&id).await.iter().filter_map(|event| event["kind"].as_str().map(str::to_owned)).collect();
    let place = |kind: &str| kinds.iter().rposition(|one| one == kind).unwrap_or_else(|| panic!("{kind}: {kinds:?}"));
    assert!(place("current_mode_update") < place("run_started"), "{kinds:?}");

    // What the agent does not have is refused; the session is open, and nothing was sent to it.
    for (option, value) in [("--mode", "none-such"), ("--model", "none-such")] {
        let (code, said, why) = run(&["demo", option, value, "echo", "never"]).await;
        assert_ne!(code, Some(0), "{said}{why}");
        assert!(why.contains("choosing none-such") && why.contains("plexus attach"), "{why}");
        let open = why.split("plexus attach ").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
        let (_, left) = gateway.get(&format!("/v1/sessions/{open}/snapshot")).await;
        assert_eq!(left["messages"], json!([]), "{left}");
    }
}

#[tokio::test]
async fn session_begins_in_the_mode_that_was_wanted_or_not_at_all() {
    let gateway = Gateway::demo().await;
    let count = async || gateway.get("/v1/sessions").await.1["sessions"].as_array().unwrap().len();
    let before = count().await;
    let (status, opened) = gateway.post("/v1/sessions", json!({ "runtime_id": "demo", "mode": "auto" })).await;
    assert_eq!(status, 201, "{opened}");
    let id = opened["session_id"].as_str().unwrap();
    let (_, snapshot) = gateway.get(&format!("/v1/sessions/{id}/snapshot")).await;
    assert_eq!(snapshot["latest"]["current_mode_update"]["currentModeId"], "auto", "{snapshot}");
    for (member, code, offered) in [("mode", "mode_not_offered", "ask, auto"), ("model", "model_not_offered", "model")]
    {
        let mut wish = json!({ "runtime_id": "demo", "mode": "auto" });
        wish[member] = "none-such".into();
        let (status, refused) = gateway.post("/v1/sessions", wish.clone()).await;
        assert_eq!((status, &refused["code"]), (422, &json!(code)), "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains(offered), "{refused}");
        // An agent that was started for it is gone, too.
        wish["runtime_id"].take();
        wish["start"] = json!({ "preset": "demo", "id": "for-this", "outlive": false });
        wish["cwd"] = json!("/");
        let (status, refused) = gateway.post("/v1/sessions", wish).await;
        assert_eq!((status, &refused["code"]), (422, &json!(code)), "{refused}");
        assert_eq!(gateway.get("/v1/runtimes/for-this").await.0, 404);
    }
    assert_eq!(count().await, before + 1, "no session was left");
    // A device that may not answer requests may not choose how many there are.
    let grant = json!({ "name": "tablet", "scopes": ["watch", "prompt"], "runtimes": ["demo"] });
    let (_, device) = gateway.post("/v1/devices", grant).await;
    let post = reqwest::Client::new().post(format!("{}/v1/sessions", gateway.url));
    let post = post.bearer_auth(device["token"].as_str().unwrap());
    let refused = post.json(&json!({ "runtime_id": "demo", "mode": "auto" })).send().await.unwrap();
    assert_eq!(refused.status(), 403);
    assert_eq!(count().await, before + 1);
}

#[tokio::test]
async fn runtime_of_a_preset_has_the_settings_of_its_call() {
    let dir = tempfile::tempdir().unwrap();
    let mut gateway = Gateway::start_with(dir, "", &[("STORY_PASSED", "yes")]).await;
    let wish = json!({
        "preset": "demo", "cwd": gateway.home, "outlive": false, "restart": "always", "pass_env": ["STORY_PASSED"],
        "env": { "STORY_SET": "too" },
    });
    let (status, started) = gateway.post("/v1/runtimes", wish).await;
    assert_eq!((status, &started["outlives"]), (201, &Value::Null), "{started}");
    let pid = runtime_pid(&gateway, None).await;
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let has = |wanted: &str| environ.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes());
    assert!(has("STORY_PASSED=yes") && has("STORY_SET=too"));
    std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
    let next = runtime_pid(&gateway, Some(pid)).await;
    assert!(gateway.stop().await.success());
    let deadline = std::time::Instant::now() + PATIENCE;
    while alive(next) {
        assert!(std::time::Instant::now() < deadline, "it outlives the gateway");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// The process of the demo runtime, once it is ready; another one than `before`.
async fn runtime_pid(gateway: &Gateway, before: Option<u32>) -> u32 {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let (_, runtime) = gateway.get("/v1/runtimes/demo").await;
        let pid = runtime["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        if let Some(pid) = pid.filter(|pid| runtime["state"] == "ready" && before != Some(*pid)) {
            return pid;
        }
        assert!(std::time::Instant::now() < deadline, "{runtime}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
