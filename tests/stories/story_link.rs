//! `plexus link` on prepared machines: what it edits, what it refuses, and that it is undone byte for byte.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::gateway::{Gateway, exe};
use common::moments::until_so;
use common::terminal::Terminal;
use serde_json::{Value, json};

/// A home folder, and programs that print a version.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new(programs: &[(&str, &str)]) -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap() };
        for name in ["bin", "home", "project"] {
            std::fs::create_dir(machine.at(name)).unwrap();
        }
        for (name, version) in programs {
            machine.program(name, version);
        }
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn program(&self, name: &str, version: &str) {
        let path = self.at("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n[ \"$1\" = --version ] && echo '{version}'\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn env(&self) -> [(&'static str, String); 3] {
        let path = |name: &str| self.at(name).display().to_string();
        [("PATH", format!("{}:/usr/bin:/bin", path("bin"))), ("HOME", path("home")), ("PLEXUS_HOME", path("state"))]
    }

    fn run_by(&self, program: &Path, args: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.at("project")).stdin(Stdio::null());
        command.env_clear().envs(self.env()).output().unwrap()
    }

    /// Exit code, stdout and stderr.
    fn plexus(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.run_by(Path::new(exe()), args);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }

    fn json(&self, args: &[&str]) -> Value {
        let (_, out, err) = self.plexus(&[args, &["--json"]].concat());
        serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}{err}"))
    }

    /// The doctor's result for an agent's link: verdict, text and fix.
    fn doctor(&self, agent: &str) -> (String, String) {
        let report = self.json(&["doctor"]);
        let name = format!("link {agent}");
        let check = report["checks"].as_array().unwrap().iter().find(|check| check["check"] == name.as_str());
        let check = check.unwrap_or_else(|| panic!("no {name} in {report:#}"));
        let fix = check["fix"].as_str().unwrap_or_default();
        (check["verdict"].as_str().unwrap().into(), format!("{}; {fix}", check["found"].as_str().unwrap()))
    }

    /// Every file below the home folder with its text.
    fn files(&self) -> Vec<(PathBuf, String)> {
        let (mut all, mut left) = (Vec::new(), vec![self.at("home")]);
        while let Some(dir) = left.pop() {
            for entry in std::fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    left.push(path);
                } else {
                    let text = std::fs::read_to_string(&path).unwrap();
                    all.push((path, text));
                }
            }
        }
        all.sort();
        all
    }
}

const INSTALLED: &[(&str, &str)] = &[
    ("claude", "2.1.330 (Claude Code)"),
    ("gemini", "0.61.0"),
    ("opencode", "1.18.33"),
    ("copilot", "GitHub Copilot CLI 1.0.102."),
    ("codex", "codex-cli 0.169.0"),
];

/// Settings of others, each in the style of its own.
fn settings(machine: &Machine) {
    machine.write("home/.claude/settings.json", "{\r\n\t\"model\": \"opus\",\r\n\t\"hooks\": {\"Stop\": []}\r\n}");
    machine.write(
        "home/.gemini/settings.json",
        "// mine\n{\n    \"ui\": {\"theme\": \"x\"} // dark\n    /* end */\n}\n\n",
    );
    machine.write("home/.copilot/settings.json", "{\"experimental\":false,}");
}

#[test]
fn link_edits_every_installed_agent_and_removal_restores_each_file() {
    let machine = Machine::new(INSTALLED);
    settings(&machine);
    let before = machine.files();
    let (code, out, err) = machine.plexus(&["link", "--yes"]);
    assert_eq!(code, 0, "{out}{err}");
    let linked = machine.files();
    assert_eq!(linked.len(), before.len() + 2, "two files are new");
    for words in [
        "claude  Claude Code, 2.1.330 (Claude Code)",
        ".claude/settings.json",
        "+\t\"hooks\": {\"Stop\": [{\"hooks\": [",
        "plexus link claude --remove",
        "gemini  Gemini CLI, 0.61.0",
        ".gemini/settings.json",
        "codex  Codex, codex-cli 0.169.0",
        "nothing is edited: a running gateway finds",
        "claude, gemini, opencode, copilot: linked",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(!out.contains("Qwen Code"), "it is not installed: {out}");
    for (file, words) in [
        (".claude/settings.json", format!("{} hook claude --inbox", exe())),
        (".gemini/settings.json", format!("{} hook gemini", exe())),
        (".config/opencode/plugins/plexus.js", "plexus link opencode --remove".into()),
        (".copilot/extensions/plexus/extension.mjs", "plexus link copilot --remove".into()),
        (".copilot/settings.json", "\"experimental\":true".into()),
    ] {
        let text = std::fs::read_to_string(machine.at("home").join(file)).unwrap();
        assert!(text.contains(&words), "{file}: {text}");
    }
    // A second time changes nothing.
    let (code, out, err) = machine.plexus(&["link", "--yes"]);
    assert_eq!((code, out.matches("linked already").count()), (0, 4), "{out}{err}");
    assert_eq!(machine.files(), linked);
    for agent in ["claude", "gemini", "opencode", "copilot"] {
        let (verdict, words) = machine.doctor(agent);
        assert!(verdict == "ok" && words.contains("; linked"), "{agent}: {verdict} {words}");
    }
    // One, then the rest; the programs need not be there any more.
    let (code, out, err) = machine.plexus(&["link", "claude", "--remove", "--yes"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains("as it was before linking, byte for byte") && out.contains("claude: not linked any more"),
        "{out}"
    );
    std::fs::remove_dir_all(machine.at("bin")).unwrap();
    let (code, out, err) = machine.plexus(&["link", "--remove", "--yes"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(machine.files(), before);
    assert!(!machine.at("home/.config").exists());
    let (code, _, err) = machine.plexus(&["link", "--remove", "--yes"]);
    assert!(code == 1 && err.contains("nothing to do: no agent is linked"), "{code} {err}");
    let (code, out, _) = machine.plexus(&["link", "claude", "--remove", "--yes"]);
    assert!(code == 0 && out.contains("not linked"), "{code} {out}");
}

#[tokio::test]
async fn link_over_http_makes_exactly_the_change_that_was_shown() {
    let machine = Machine::new(INSTALLED);
    settings(&machine);
    let before = machine.files();
    let env = machine.env();
    let env: Vec<(&str, &str)> = env[..2].iter().map(|(name, value)| (*name, value.as_str())).collect();
    let gateway = Gateway::start_with(tempfile::tempdir().unwrap(), "", &env).await;
    let link = async |agent: &str, action: &str, digest: &Value| {
        gateway.post(&format!("/v1/link/{agent}"), json!({ "action": action, "digest": digest })).await
    };
    let of = |body: &Value, agent: &str| -> Value {
        let agents = body["agents"].as_array().unwrap_or_else(|| panic!("{body:#}"));
        agents.iter().find(|one| one["agent"] == agent).unwrap().clone()
    };
    let (status, all) = gateway.get("/v1/link").await;
    assert_eq!(status, 200, "{all}");
    let claude = of(&all, "claude");
    assert_eq!((&claude["state"], &claude["version"]), (&json!("not_linked"), &json!("2.1.330 (Claude Code)")));
    assert!(claude["unlink"].is_null() && claude["heard_at"].is_null(), "{claude}");
    let file = &claude["link"]["files"][0];
    assert_eq!(file["action"], "edit");
    assert!(file["path"].as_str().unwrap().ends_with("home/.claude/settings.json"), "{file}");
    assert!(file["diff"].as_str().unwrap().contains("hook claude --inbox"), "{file}");
    let qwen = of(&all, "qwen");
    assert!(qwen["path"].is_null() && qwen["link"].is_null(), "it is not installed: {qwen}");
    assert_eq!(of(&all, "codex")["state"], "not_needed");

    // Another change than the one that was shown: nothing happens.
    let digest = &claude["link"]["digest"];
    let settings = machine.at("home/.claude/settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text.replace("opus", "sonnet")).unwrap();
    let changed = machine.files();
    let (status, problem) = link("claude", "link", digest).await;
    assert_eq!((status, &problem["code"]), (409, &json!("link_changed")));
    assert_eq!(machine.files(), changed);
    std::fs::write(&settings, text).unwrap();
    let (status, problem) = link("claude", "unlink", digest).await;
    assert_eq!((status, &problem["code"]), (409, &json!("link_changed")), "the other change has another digest");
    for (agent, status, code) in
        [("codex", 422, "link_refused"), ("qwen", 422, "link_refused"), ("x", 404, "agent_not_found")]
    {
        let (got, problem) = link(agent, "link", digest).await;
        assert_eq!((got, &problem["code"]), (status, &json!(code)), "{agent}");
    }
    assert_eq!(machine.files(), before);

    // As it was shown: it is linked, and undone byte for byte.
    let (status, all) = link("claude", "link", digest).await;
    assert_eq!(status, 200, "{all}");
    let claude = of(&all, "claude");
    assert!(claude["state"] == "linked" && claude["link"].is_null(), "{claude}");
    assert_eq!(claude["unlink"]["files"][0]["exact"], true);
    assert!(std::fs::read_to_string(&settings).unwrap().contains("hook claude --inbox"));
    let (status, all) = link("claude", "unlink", &claude["unlink"]["digest"]).await;
    assert_eq!((status, &of(&all, "claude")["state"]), (200, &json!("not_linked")));
    assert_eq!(machine.files(), before);

    // Only this machine's administrator: not even a device that may prompt and answer everything.
    let device = json!({ "name": "phone", "scopes": ["watch", "prompt", "approve"] });
    let (status, device) = gateway.post("/v1/devices", device).await;
    assert_eq!(status, 201, "{device}");
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let path = format!("{}/v1/link", gateway.url);
    let got = http.get(&path).bearer_auth(device["token"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(got.status(), 403);
}

#[tokio::test]
async fn link_term_starts_an_agent_that_is_typed_in_a_shared_terminal() {
    let machine = Machine::new(&[("claude", "2.1.330"), ("gemini", "0.61.0")]);
    let bashrc = "# mine\nalias gemini='gemini --fast'\nPS1='ready> '";
    machine.write("home/.bashrc", bashrc);
    // What it runs in, and its arguments.
    let path = machine.at("bin/gemini");
    std::fs::write(&path, "#!/bin/sh\necho \"in [$PLEXUS_TERMINAL] with [$*]\"\n").unwrap();
    let before = machine.files();

    let output = machine.run_by(Path::new(exe()), &["link", "--term", "gemini", "--yes"]);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && err.contains("only bash, zsh and fish are known"), "{err}");
    let bash = |args: &[&str]| {
        let mut command = Command::new(exe());
        command.args(args).current_dir(machine.at("project")).stdin(Stdio::null()).env_clear();
        let output = command.envs(machine.env()).env("SHELL", "/bin/bash").output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    };
    let out = bash(&["link", "--term", "gemini", "claude", "--yes"]);
    for words in [
        "Gemini CLI in a shared terminal, from bash",
        "+function gemini {",
        "plexus link --term gemini --remove",
        "gemini-bash, claude-bash: linked; shells that are started from now on",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(bash(&["link", "--term", "gemini", "claude", "--yes"]).matches("linked already").count() == 2);

    let env = machine.env();
    let mut env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    env.extend([("SHELL", "/bin/bash"), ("HISTFILE", "")]);
    let shell = Terminal::open(Some(&machine.at("project")), (100, 30), &env, &["bash", "--noprofile", "-i"]);
    shell.wrote("ready>", 1).await;
    shell.words("gemini one 'two three'\n");
    shell.wrote("with [--fast one two three]", 1).await;
    let text = shell.all();
    assert!(text.contains("in [t_"), "it runs in a shared terminal: {text}");
    // Until the shell asks again, keys go to the terminal that ends.
    shell.wrote("ready>", 2).await;
    // In a pipe it is the program itself.
    shell.words("clear; gemini four | cat\n");
    shell.wrote("in [] with [--fast four]", 1).await;
    drop(shell);

    bash(&["link", "--term", "claude", "--remove", "--yes"]);
    let left = std::fs::read_to_string(machine.at("home/.bashrc")).unwrap();
    assert!(left.contains("function gemini") && !left.contains("function claude"), "{left}");
    bash(&["link", "gemini", "--remove", "--yes"]);
    assert_eq!(machine.files(), before);
    // The other order, and both at once: the file's last line keeps the end that it was given.
    bash(&["link", "--term", "gemini", "claude", "--yes"]);
    bash(&["link", "--remove", "--yes"]);
    assert_eq!(std::fs::read_to_string(machine.at("home/.bashrc")).unwrap().trim_end(), bashrc);
}

#[test]
fn link_removal_leaves_what_a_person_changed_in_between() {
    let machine = Machine::new(INSTALLED);
    settings(&machine);
    machine.plexus(&["link", "--yes"]);
    let claude = machine.at("home/.claude/settings.json");
    let text = std::fs::read_to_string(&claude).unwrap();
    std::fs::write(&claude, text.replace("\"opus\"", "\"sonnet\"")).unwrap();
    let (code, out, err) = machine.plexus(&["link", "claude", "--remove", "--yes"]);
    assert!(code == 0 && out.contains("only the entries of linking are removed"), "{out}{err}");
    let left = "{\r\n\t\"model\": \"sonnet\",\r\n\t\"hooks\": {\"Stop\": []}\r\n}";
    assert_eq!(std::fs::read_to_string(&claude).unwrap(), left);
}

#[test]
fn link_refuses_what_would_harm_and_does_the_rest() {
    let machine = Machine::new(&[("claude", "2.1.330"), ("opencode", "no version")]);
    machine.write("home/.claude/settings.json", "{\"hooks\": [],}");
    let (code, out, err) = machine.plexus(&["link", "--yes"]);
    assert_eq!(code, 1, "{out}{err}");
    for words in [
        "claude: ",
        "line 1, column 13: trailing commas are not allowed, so the agent itself cannot read the file",
        "opencode: its version is not known (it prints \"no version\")",
    ] {
        assert!(err.contains(words), "{words}: {err}");
    }
    let machine = Machine::new(&[("claude", "2.1.220 (Claude Code)"), ("opencode", "1.18.33")]);
    let before = machine.files();
    let (code, out, err) = machine.plexus(&["link", "--yes"]);
    assert_eq!(code, 1, "{out}{err}");
    for words in [
        "claude: version 2.1.220 is too old: before 2.1.221 a terminal shows no dialog",
        "update it to 2.1.221 or newer",
    ] {
        assert!(err.contains(words), "{words}: {err}");
    }
    assert!(out.contains("opencode: linked"), "{out}");
    std::fs::remove_file(machine.at("home/.config/opencode/plugins/plexus.js")).unwrap();
    assert_eq!(machine.files(), before, "and nothing else is written");
    let (code, _, err) = machine.plexus(&["link", "qwen", "codex", "--yes"]);
    assert_eq!(code, 0, "{err}");
    std::fs::remove_file(machine.at("bin/claude")).unwrap();
    let (code, _, err) = machine.plexus(&["link", "claude", "--yes"]);
    assert!(code == 1 && err.contains("claude is not on PATH; install it"), "{err}");
    assert_eq!(machine.plexus(&["link", "netscape"]).0, 2);
    std::fs::remove_dir_all(machine.at("bin")).unwrap();
    let (code, _, err) = machine.plexus(&["link", "--yes"]);
    assert!(code == 1 && err.contains("none of these programs is on PATH: claude, gemini"), "{err}");
    // What leads out of the home folder.
    std::fs::create_dir(machine.at("bin")).unwrap();
    machine.program("claude", "2.1.330");
    let outside = machine.write("elsewhere/settings.json", "{}");
    std::fs::create_dir(machine.at("home/.claude")).unwrap();
    std::os::unix::fs::symlink(&outside, machine.at("home/.claude/settings.json")).unwrap();
    let (code, _, err) = machine.plexus(&["link", "claude", "--yes"]);
    assert!(code == 1 && err.contains("outside of your home folder"), "{err}");
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "{}");
}

#[test]
fn link_without_a_terminal_needs_yes() {
    let machine = Machine::new(INSTALLED);
    settings(&machine);
    let before = machine.files();
    let (code, out, err) = machine.plexus(&["link", "claude"]);
    assert!(code == 1 && err.contains("no terminal for the confirmation; --yes skips it"), "{err}");
    assert!(out.contains("edit") && out.contains("+\t"), "what it would do is shown: {out}");
    // For scripts: what would be done, exactly.
    let plan = machine.json(&["link", "claude", "codex"]);
    let [claude, codex] = plan["agents"].as_array().unwrap().as_slice() else { panic!("{plan}") };
    assert_eq!((&claude["agent"], &claude["result"]), (&json!("claude"), &json!("planned")));
    assert_eq!(claude["files"][0]["path"], json!(machine.at("home/.claude/settings.json")));
    assert_eq!(claude["files"][0]["action"], "edit");
    assert!(claude["files"][0]["diff"].as_str().unwrap().contains("hook claude --inbox"), "{claude}");
    assert_eq!(codex["result"], "not_needed");
    assert_eq!(machine.files(), before);
    let done = machine.json(&["link", "claude", "--yes"]);
    assert_eq!(done["agents"][0]["result"], "done");
    assert_ne!(machine.files(), before);
    let removed = machine.json(&["link", "--remove", "--yes"]);
    assert_eq!(
        (&removed["agents"][0]["result"], &removed["agents"][0]["files"][0]["exact"]),
        (&json!("done"), &json!(true))
    );
    assert_eq!(machine.files(), before);
}

#[tokio::test]
async fn link_asks_on_a_terminal() {
    let machine = Machine::new(INSTALLED);
    settings(&machine);
    let before = machine.files();
    let env = machine.env();
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let line = format!("'{}' link claude; echo \"ended with $?.\"; read end", exe());
    for (answer, end, links) in
        [("n", "ended with 1.", false), ("", "ended with 1.", false), ("y", "ended with 0.", true)]
    {
        let terminal = Terminal::open(Some(&machine.at("project")), (100, 60), &env, &["sh", "-c", &line]);
        until_so("it asks", || async { terminal.text().contains("Link claude? [y/N]") }).await;
        assert_eq!(machine.files(), before, "nothing is done before the answer");
        terminal.words(answer);
        terminal.keys(&["Enter"]);
        until_so("it ends", || async { terminal.text().contains(end) }).await;
        assert_eq!(machine.files() != before, links, "{answer:?}");
    }
}

#[test]
fn link_follows_the_program_to_another_path() {
    let machine = Machine::new(INSTALLED);
    settings(&machine);
    let before = machine.files();
    // As packages do it: a link on PATH, to a folder with the version in its name.
    std::fs::create_dir(machine.at("1.0")).unwrap();
    let old = machine.at("1.0/plexus");
    std::fs::copy(exe(), &old).unwrap();
    std::os::unix::fs::symlink(&old, machine.at("bin/plexus")).unwrap();
    assert!(machine.run_by(&machine.at("bin/plexus"), &["link", "claude", "--yes"]).status.success());
    let claude = machine.at("home/.claude/settings.json");
    let text = std::fs::read_to_string(&claude).unwrap();
    let stable = format!("{} hook claude", machine.at("bin/plexus").display());
    assert!(text.contains(&stable) && !text.contains("1.0/plexus"), "{text}");
    // This program is another one.
    let (verdict, words) = machine.doctor("claude");
    assert!(verdict == "warn" && words.contains("out of date") && words.contains("`plexus link claude`"), "{words}");
    assert_eq!(machine.plexus(&["link", "claude", "--yes"]).0, 0);
    let text = std::fs::read_to_string(&claude).unwrap();
    assert!(text.contains(exe()) && !text.contains(&stable), "{text}");
    assert_eq!(machine.plexus(&["link", "--remove", "--yes"]).0, 0);
    assert_eq!(machine.files(), before);
}

#[test]
fn link_state_and_shadows_are_told_by_the_doctor() {
    let machine = Machine::new(INSTALLED);
    let (verdict, words) = machine.doctor("claude");
    assert!(verdict == "ok" && words.contains("(2.1.330 (Claude Code)); not linked; `plexus link claude`"), "{words}");
    assert!(machine.doctor("qwen").1.starts_with("qwen is not on PATH"));
    assert!(machine.doctor("codex").1.contains("nothing is edited"));
    machine.program("claude", "2.0.0");
    assert!(machine.doctor("claude").1.contains("not linked, and cannot be: version 2.0.0 is too old"));
    machine.program("claude", "2.1.330");
    machine.write("project/.claude/settings.local.json", "{\"disableAllHooks\": true}");
    let (code, out, _) = machine.plexus(&["link", "claude", "--yes"]);
    assert!(code == 0 && out.contains("but     "), "{out}");
    assert!(
        out.contains("settings.local.json has \"disableAllHooks\": true: its sessions in this folder are not seen"),
        "{out}"
    );
    let report = machine.json(&["doctor"]);
    let notices = report["links"][0]["notices"].as_array().unwrap();
    assert!(notices.len() == 1 && notices[0].as_str().unwrap().contains("disableAllHooks"), "{notices:?}");
    machine.program("claude", "2.0.0");
    let (verdict, words) = machine.doctor("claude");
    assert!(verdict == "warn" && words.contains("linked, but version 2.0.0 is too old"), "{words}");
    machine.program("claude", "2.1.330");
    let claude = machine.at("home/.claude/settings.json");
    let text = std::fs::read_to_string(&claude).unwrap();
    std::fs::write(&claude, text.replacen("\"Notification\"", "\"Other\"", 1)).unwrap();
    let (verdict, words) = machine.doctor("claude");
    assert!(verdict == "warn" && words.contains("damaged") && words.contains("Notification is missing"), "{words}");
    std::fs::write(&claude, "{").unwrap();
    let (verdict, words) = machine.doctor("claude");
    assert!(verdict == "warn" && words.contains("line 1, column 1"), "{words}");
}
