//! Lines that the user types.

use std::io::BufRead as _;

/// Reads a line of stdin; empty at the end of stdin.
pub(crate) async fn read_line() -> String {
    let (sender, typed) = tokio::sync::oneshot::channel();
    // A separate thread, so that waiting for a line does not keep the program running.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        let _ = sender.send(read.map(|_| line).unwrap_or_default());
    });
    typed.await.unwrap_or_default()
}
