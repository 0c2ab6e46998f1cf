//! Describes how a process ended.

use std::process::ExitStatus;

use rustix::process::Signal;

/// Returns the exit code of a process, or the name of the signal that killed it.
pub fn ended(status: ExitStatus) -> (Option<i32>, Option<String>) {
    use std::os::unix::process::ExitStatusExt;
    (status.code(), status.signal().map(signal_name))
}

/// Returns the name of a signal.
pub fn signal_name(number: i32) -> String {
    let known = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    let name = known.iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| format!("signal {number}"))
}
