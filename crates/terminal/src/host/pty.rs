//! The pseudo-terminal and the program in it.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::sync::{mpsc, oneshot};

use crate::model::TerminalSize;
use crate::wire::{INPUT_MAX, TerminalExit};
use plexus_protocol::TerminalId;

/// Maximum number of pieces of output, of at most [`READ`] bytes, that wait to be handled; the program waits for capacity.
const OUTPUT_PIECES: usize = 8;

/// Number of bytes read from the pseudo-terminal at once.
const READ: usize = 16 << 10;

/// Maximum number of pieces of input, of at most [`INPUT_MAX`] bytes, that wait for the program; attachments wait for capacity.
const INPUT_PIECES: usize = 4;

/// Time after which the wait for the end of a program is repeated if the system interrupts it.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The variable that has the shared terminal of a program.
pub(super) const VARIABLE: &str = "PLEXUS_TERMINAL";

/// The reason why the program was not started: the shells' code, and a message.
pub(super) struct NotSpawned(pub(super) u8, pub(super) String);

/// A program in a pseudo-terminal.
pub(super) struct Pty {
    master: Box<dyn MasterPty + Send>,
    /// The program's process id, which is also its session's and its group's.
    pub(super) pid: u32,
    /// The output of the program; closed when no process has the terminal open any more.
    pub(super) output: mpsc::Receiver<Bytes>,
    /// The input of the program.
    pub(super) input: mpsc::Sender<Bytes>,
    /// The end of the program.
    pub(super) exit: oneshot::Receiver<TerminalExit>,
}

impl Pty {
    /// Starts a program with this process's environment and folder.
    pub(super) fn spawn(id: &TerminalId, command: &[OsString], size: TerminalSize) -> Result<Self, NotSpawned> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(NotSpawned(126, "no command given".into()));
        };
        let name = program.display();
        let failed = |why: &dyn std::fmt::Display| NotSpawned(126, format!("cannot start {name}: {why}"));
        if !exists(program) {
            let fix = "check its spelling and PATH";
            return Err(NotSpawned(127, format!("cannot start {name}: there is no such program; {fix}")));
        }
        let pair = native_pty_system().openpty(pty_size(size)).map_err(|why| failed(&why))?;
        let mut builder = CommandBuilder::new(program);
        builder.args(arguments);
        builder.env_clear();
        std::env::vars_os().for_each(|(name, value)| builder.env(name, value));
        builder.env(VARIABLE, id.as_str());
        builder.cwd(std::env::current_dir().map_err(|why| failed(&why))?);
        let child = pair.slave.spawn_command(builder).map_err(|why| failed(&why))?;
        // If this stayed open, the end of the program would never be the end of its output.
        drop(pair.slave);
        let pid = child.process_id().ok_or_else(|| failed(&"it has no process id"))?;
        let reader = pair.master.try_clone_reader().map_err(|why| failed(&why))?;
        let writer = pair.master.take_writer().map_err(|why| failed(&why))?;
        let (sender, output) = mpsc::channel(OUTPUT_PIECES);
        let (input, receiver) = mpsc::channel(INPUT_PIECES);
        let (ended, exit) = oneshot::channel();
        std::thread::spawn(move || read(reader, &sender));
        std::thread::spawn(move || write(writer, receiver));
        std::thread::spawn(move || ended.send(wait(pid)));
        Ok(Self { master: pair.master, pid, output, input, exit })
    }

    /// Sets the size of the terminal, of which its program is notified.
    pub(super) fn resize(&self, size: TerminalSize) {
        // It fails for a terminal that no longer exists.
        let _ = self.master.resize(pty_size(size));
    }

    /// Sends a signal to the program's group, and to the group in the foreground.
    pub(super) fn signal(&self, signal: Signal) {
        let own = i32::try_from(self.pid).ok();
        for group in [self.master.process_group_leader(), own].into_iter().flatten() {
            if let Some(group) = Pid::from_raw(group).filter(|group| *group != rustix::process::getpgrp()) {
                let _ = rustix::process::kill_process_group(group, signal);
                if signal == Signal::HUP {
                    // A stopped program would not notice the signal.
                    let _ = rustix::process::kill_process_group(group, Signal::CONT);
                }
            }
        }
    }
}

fn pty_size(size: TerminalSize) -> PtySize {
    PtySize { rows: size.rows, cols: size.cols, pixel_width: 0, pixel_height: 0 }
}

/// Returns whether there is such a program, by the rules of the system's search.
fn exists(program: &std::ffi::OsStr) -> bool {
    let path = Path::new(program);
    if path.components().count() > 1 || path.is_absolute() {
        return path.is_file();
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    std::env::split_paths(&folders).any(|folder| folder.join(path).is_file())
}

fn read(mut reader: Box<dyn Read + Send>, output: &mpsc::Sender<Bytes>) {
    let mut buffer = vec![0; READ];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => {
                if output.blocking_send(Bytes::copy_from_slice(&buffer[..read])).is_err() {
                    return;
                }
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn write(mut writer: Box<dyn Write + Send>, mut input: mpsc::Receiver<Bytes>) {
    while let Some(bytes) = input.blocking_recv() {
        debug_assert!(bytes.len() <= INPUT_MAX);
        if writer.write_all(&bytes).is_err() {
            break;
        }
    }
    // If it were dropped, it would type the end of a file; the program or its terminal has ended.
    std::mem::forget(writer);
}

/// Waits for the program's end.
fn wait(pid: u32) -> TerminalExit {
    let unknown = TerminalExit { code: None, signal: None };
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return unknown };
    loop {
        match rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED) {
            Ok(Some(status)) => {
                return TerminalExit { code: status.exit_status(), signal: status.terminating_signal() };
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => std::thread::sleep(RETRY_PAUSE),
            Err(_) => return unknown,
        }
    }
}
