//! The Tokio runtime of commands with several worker threads.

use super::failure::CommandResult;

/// The number of worker threads: one for every two cores, and at least two if there are two cores. The path of an event is short; waking a
/// sleeping worker for it costs more than it saves (measured in docs/performance.md), and the log's writer and the agents need cores too.
/// With a single worker, one busy client would delay all others.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2).max(cores.get().min(2)))
}

/// Runs a command to its end.
pub(crate) fn block_on(command: impl Future<Output = CommandResult>) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers()).enable_all().build()?;
    let result = runtime.block_on(command);
    // A thread that waits for a line on stdin must not keep the program running.
    runtime.shutdown_background();
    result
}
