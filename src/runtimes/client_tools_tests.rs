//! Client tools with real files and real commands, behind a holder of a few lines.
#![allow(clippy::unwrap_used)]

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt;
use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::client_tools::ClientTools;
use plexus_dialects::{ClientToolCall, ClientToolError, ClientToolResult, ClientToolWork, CommandEnd};
use plexus_protocol::RuntimeId;
use plexus_sessions::ClientRouter;

/// A condition that is waited for holds long before this, or never.
const SOON: Duration = Duration::from_secs(30);

/// A holder that tells its whole group when it is told to end.
const HOLDER: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
trap 'trap "" TERM; kill -TERM 0' TERM
"$@" &
wait $!
exit $?
"#;

struct Bench {
    tools: ClientTools,
    dir: TempDir,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let hold = dir.path().join("hold");
        // Written by a child: were it open for writing here, a process that another test starts just then would hold it
        // open too, and it could not be run.
        let script = r#"printf %s "$1" >"$0"; chmod 755 "$0""#;
        let written = std::process::Command::new("sh").args(["-c", script]).arg(&hold).arg(HOLDER).status();
        assert!(written.unwrap().success());
        std::fs::create_dir(dir.path().join("w")).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let env = [("PATH".into(), path), ("BASE".into(), "base".into())].into();
        Self { tools: ClientTools::new(hold, env, RuntimeId::trusted("r"), ClientRouter::default(), None), dir }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("w")
    }

    fn start(&mut self, id: u64, work: ClientToolWork) {
        let folder = self.folder().to_str().unwrap().to_owned();
        self.tools.start(ClientToolCall { id, folder, work });
    }

    async fn next(&mut self) -> (u64, Result<ClientToolResult, ClientToolError>) {
        timeout(SOON, self.tools.next()).await.unwrap()
    }

    async fn done(&mut self, work: ClientToolWork) -> Result<ClientToolResult, ClientToolError> {
        self.start(1, work);
        let (id, done) = self.next().await;
        assert_eq!(id, 1);
        done
    }

    /// Runs a line in terminal 0.
    async fn run(&mut self, line: &str) {
        assert_eq!(self.done(command(line)).await, Ok(ClientToolResult::Done));
    }

    async fn end(&mut self) -> CommandEnd {
        match self.done(ClientToolWork::Wait { terminal: 0 }).await {
            Ok(ClientToolResult::Ended(end)) => end,
            other => panic!("{other:?}"),
        }
    }

    async fn output(&mut self) -> (String, bool) {
        match self.done(ClientToolWork::Output { terminal: 0 }).await {
            Ok(ClientToolResult::Output { text, cut, .. }) => (text, cut),
            other => panic!("{other:?}"),
        }
    }

    /// Runs a command whose child holds a pipe open: once it does, something that is told when both are gone.
    async fn watched(&mut self) -> oneshot::Receiver<()> {
        let pipe = self.dir.path().join("alive");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        self.run(&format!("exec >{}; sleep 1000 & echo $!; wait", pipe.display())).await;
        let ((up, is_up), (gone, is_gone)) = (oneshot::channel(), oneshot::channel());
        // A thread of its own: a test that fails does not wait for it.
        std::thread::spawn(move || {
            let mut pipe = std::fs::File::open(pipe).unwrap();
            let mut bytes = [0; 64];
            let _ = pipe.read(&mut bytes);
            let _ = up.send(());
            while pipe.read(&mut bytes).is_ok_and(|read| read > 0) {}
            let _ = gone.send(());
        });
        timeout(SOON, is_up).await.unwrap().unwrap();
        is_gone
    }
}

fn command(line: &str) -> ClientToolWork {
    ClientToolWork::Run { terminal: 0, argv: vec![line.into()], env: Vec::new(), cwd: None, keep: None }
}

#[tokio::test]
async fn client_tools_read_and_write_files() {
    let mut bench = Bench::new();
    let path = bench.folder().join("f").to_str().unwrap().to_owned();
    let write = ClientToolWork::Write { path: path.clone(), before: None, text: "text".into() };
    assert_eq!(bench.done(write).await, Ok(ClientToolResult::Done));
    let read = ClientToolWork::Read { path, line: None, limit: None };
    assert_eq!(bench.done(read).await, Ok(ClientToolResult::Text("text".into())));
    let outside = ClientToolWork::Read { path: "/etc/passwd".into(), line: None, limit: None };
    assert!(matches!(bench.done(outside).await, Err(ClientToolError::Refused(_))));
}

#[tokio::test]
async fn terminal_returns_output_in_order_and_the_exit() {
    let mut bench = Bench::new();
    bench.run("echo out; echo err >&2; echo out; exit 3").await;
    assert_eq!(bench.end().await, CommandEnd { code: Some(3), signal: None });
    assert_eq!(bench.output().await, ("out\nerr\nout\n".into(), false));
    let output = bench.done(ClientToolWork::Output { terminal: 0 }).await;
    assert!(matches!(output, Ok(ClientToolResult::Output { end: Some(CommandEnd { code: Some(3), .. }), .. })));
}

#[tokio::test]
async fn terminal_runs_arguments_unchanged_in_their_folder_with_their_variables() {
    let mut bench = Bench::new();
    let sub = bench.folder().join("sub");
    std::fs::create_dir(&sub).unwrap();
    let words = ["sh", "-c", "pwd; echo $BASE $MORE $PLEXUS_TOKEN $0", "a b  *"];
    let var = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let work = ClientToolWork::Run {
        terminal: 0,
        argv: words.map(String::from).to_vec(),
        env: vec![var("MORE", "more"), var("PLEXUS_TOKEN", "mine")],
        cwd: Some(sub.to_str().unwrap().into()),
        keep: None,
    };
    assert_eq!(bench.done(work).await, Ok(ClientToolResult::Done));
    bench.end().await;
    let wanted = format!("{}\nbase more a b *\n", sub.canonicalize().unwrap().display());
    assert_eq!(bench.output().await.0.replace("a b  *", "a b *"), wanted);
}

#[tokio::test]
async fn terminal_starts_in_no_other_folder() {
    let mut bench = Bench::new();
    std::os::unix::fs::symlink("/", bench.folder().join("out")).unwrap();
    for cwd in
        ["/", "/no/such", bench.folder().join("out").to_str().unwrap(), bench.folder().join("..").to_str().unwrap()]
    {
        let ClientToolWork::Run { terminal, argv, env, keep, .. } = command("echo x") else { panic!() };
        let work = ClientToolWork::Run { terminal, argv, env, cwd: Some(cwd.into()), keep };
        assert!(bench.done(work).await.is_err(), "{cwd}");
        assert_eq!(bench.output().await.0, "");
        assert_eq!(bench.done(ClientToolWork::Release { terminal: 0 }).await, Ok(ClientToolResult::Done));
    }
}

#[tokio::test]
async fn terminal_keeps_the_end_of_the_output_and_no_torn_character() {
    let mut bench = Bench::new();
    let ClientToolWork::Run { terminal, env, cwd, .. } = command("") else { panic!() };
    let argv = vec!["printf 'xéé'".into()];
    bench.done(ClientToolWork::Run { terminal, argv, env, cwd, keep: Some(3) }).await.unwrap();
    bench.end().await;
    assert_eq!(bench.output().await, ("é".into(), true));
    bench.done(ClientToolWork::Release { terminal: 0 }).await.unwrap();
    bench.run("head -c 3000000 /dev/zero").await;
    bench.end().await;
    let (text, cut) = bench.output().await;
    assert_eq!((text.len(), cut), (1024 * 1024, true));
}

#[tokio::test]
async fn terminal_that_is_killed_ends_all_its_processes() {
    let mut bench = Bench::new();
    let gone = bench.watched().await;
    bench.start(7, ClientToolWork::Wait { terminal: 0 });
    assert_eq!(bench.done(ClientToolWork::Kill { terminal: 0 }).await, Ok(ClientToolResult::Done));
    let (id, end) = bench.next().await;
    assert!(id == 7 && matches!(end, Ok(ClientToolResult::Ended(_))), "{end:?}");
    timeout(SOON, gone).await.unwrap().unwrap();
    // It can still be looked at, until it is released.
    bench.output().await;
    assert_eq!(bench.done(ClientToolWork::Release { terminal: 0 }).await, Ok(ClientToolResult::Done));
    for work in [
        ClientToolWork::Output { terminal: 0 },
        ClientToolWork::Wait { terminal: 0 },
        ClientToolWork::Kill { terminal: 0 },
    ] {
        assert!(
            matches!(bench.done(work).await, Err(ClientToolError::Refused(reason)) if reason.contains("no such terminal"))
        );
    }
}

#[tokio::test]
async fn terminal_that_is_released_or_dropped_ends() {
    for dropped in [false, true] {
        let mut bench = Bench::new();
        let gone = bench.watched().await;
        if dropped {
            drop(bench.tools);
        } else {
            assert_eq!(bench.done(ClientToolWork::Release { terminal: 0 }).await, Ok(ClientToolResult::Done));
        }
        timeout(SOON, gone).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn client_tools_refuse_too_many_calls_at_once() {
    let mut bench = Bench::new();
    bench.run("sleep 1000").await;
    for id in 0..300 {
        bench.start(id, ClientToolWork::Wait { terminal: 0 });
    }
    for _ in 0..44 {
        let (_, done) = bench.next().await;
        assert!(matches!(done, Err(ClientToolError::Refused(reason)) if reason.contains("256 calls")));
    }
    assert!(bench.tools.next().now_or_never().is_none());
}

#[tokio::test]
async fn client_tools_lose_no_result_when_a_wait_is_given_up() {
    let mut bench = Bench::new();
    for id in 0..20 {
        bench.start(id, ClientToolWork::Read { path: "/none".into(), line: None, limit: None });
    }
    let mut finished = Vec::new();
    timeout(SOON, async {
        while finished.len() < 20 {
            match bench.tools.next().now_or_never() {
                Some((id, _)) => finished.push(id),
                None => tokio::task::yield_now().await,
            }
        }
    })
    .await
    .unwrap();
    finished.sort_unstable();
    assert_eq!(finished, Vec::from_iter(0..20));
}
