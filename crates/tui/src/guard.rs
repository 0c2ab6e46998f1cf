//! Takes over the terminal, and restores it however the program ends.

use parking_lot::Mutex;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Alternate screen, no cursor, bracketed paste, focus events; the mouse is separate.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1004h\x1b[2J";
/// Resets all modes, whether they were set or not, and the styles.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[0m\x1b[?1000l\x1b[?1002l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b[?1049l";
/// Enables mouse presses and the wheel.
const MOUSE_ON: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &[u8] = b"\x1b[?1006l\x1b[?1000l";
/// The beginning and the end of a synchronized update: a terminal that supports it shows the frame at once.
const FRAME: (&[u8], &[u8]) = (b"\x1b[?2026h", b"\x1b[?2026l");

/// A terminal: stdout, or a test's recorder.
pub(crate) trait Terminal: Send + Sync + 'static {
    /// Writes all bytes.
    fn write(&self, bytes: &[u8]) -> io::Result<()>;
    /// Switches raw mode on or off.
    fn raw(&self, on: bool) -> io::Result<()>;
}

/// The terminal of this process.
pub(crate) struct Stdout;

impl Terminal for Stdout {
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    fn raw(&self, on: bool) -> io::Result<()> {
        if on { crossterm::terminal::enable_raw_mode() } else { crossterm::terminal::disable_raw_mode() }
    }
}

/// The terminal while the UI has it. It is restored on drop, and before a panic message is printed.
pub(crate) struct TerminalGuard<T: Terminal> {
    terminal: Arc<T>,
    taken: Arc<AtomicBool>,
    mouse: bool,
    frame: FrameBuffer,
    /// `true` if the terminal has exactly sixteen colours.
    pub(crate) plain: bool,
}

impl<T: Terminal> TerminalGuard<T> {
    /// Takes over the terminal.
    pub(crate) fn take(terminal: T, mouse: bool) -> io::Result<Self> {
        let terminal = Arc::new(terminal);
        let taken = Arc::new(AtomicBool::new(false));
        let (hook_terminal, hook_taken) = (Arc::clone(&terminal), Arc::clone(&taken));
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |why| {
            restore(&*hook_terminal, &hook_taken);
            before(why);
        }));
        let mut guard = Self { terminal, taken, mouse, frame: FrameBuffer::default(), plain: false };
        guard.enter()?;
        Ok(guard)
    }

    /// Takes over the terminal again.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        self.terminal.raw(true)?;
        self.taken.store(true, Ordering::SeqCst);
        self.terminal.write(ENTER)?;
        if self.mouse { self.terminal.write(MOUSE_ON) } else { Ok(()) }
    }

    /// Restores the terminal while another program needs it.
    pub(crate) fn leave(&self) {
        restore(&*self.terminal, &self.taken);
    }

    pub(crate) fn mouse(&mut self, on: bool) -> io::Result<()> {
        self.mouse = on;
        self.terminal.write(if on { MOUSE_ON } else { MOUSE_OFF })
    }

    /// Copies text to the terminal's clipboard. Only base64 is written.
    pub(crate) fn copy(&self, text: &str) -> io::Result<()> {
        let sequence = format!("\x1b]52;c;{}\x07", data_encoding::BASE64.encode(text.as_bytes()));
        self.terminal.write(sequence.as_bytes())
    }

    /// A writer of frames.
    pub(crate) fn frames(&self) -> FrameBuffer {
        self.frame.clone()
    }

    /// Writes the last frame in one synchronized update.
    pub(crate) fn show(&self) -> io::Result<()> {
        let frame = std::mem::take(&mut *self.frame.lock());
        if frame.is_empty() {
            return Ok(());
        }
        let frame = if self.plain { plain(&frame) } else { frame };
        self.terminal.write(&[FRAME.0, &frame, FRAME.1].concat())
    }
}

impl<T: Terminal> Drop for TerminalGuard<T> {
    fn drop(&mut self) {
        self.leave();
    }
}

fn restore(terminal: &impl Terminal, taken: &AtomicBool) {
    if taken.swap(false, Ordering::SeqCst) {
        // A closed terminal cannot be restored.
        let _ = terminal.write(LEAVE);
        let _ = terminal.raw(false);
    }
}

/// Rewrites the sixteen colours as basic sequences: the backend writes them as if there were 256.
fn plain(frame: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(frame.len());
    let mut rest = frame;
    while let Some(at) = memchr::memmem::find(rest, b"\x1b[") {
        let (before, sequence) = rest.split_at(at + 2);
        out.extend_from_slice(before);
        let end = sequence.iter().position(|b| !b.is_ascii_digit() && *b != b';').unwrap_or(sequence.len());
        let (parameters, after) = sequence.split_at(end);
        let parameters = String::from_utf8_lossy(parameters);
        let numbers: Vec<&str> = parameters.split(';').collect();
        let mut text: Vec<String> = Vec::new();
        let mut n = 0;
        while n < numbers.len() {
            let color = numbers.get(n + 2).and_then(|color| color.parse::<u16>().ok()).filter(|color| *color < 16);
            match (numbers[n], numbers.get(n + 1), color) {
                (ground @ ("38" | "48"), Some(&"5"), Some(color)) if after.first() == Some(&b'm') => {
                    let base = if ground == "38" { 30 } else { 40 } + if color < 8 { 0 } else { 52 };
                    text.push((base + color).to_string());
                    n += 3;
                }
                (number, ..) => {
                    text.push(number.to_owned());
                    n += 1;
                }
            }
        }
        out.extend_from_slice(text.join(";").as_bytes());
        rest = after;
    }
    out.extend_from_slice(rest);
    out
}

/// The buffer of the next frame. Flushing it writes nothing, since clearing and drawing belong together.
#[derive(Clone, Default)]
pub(crate) struct FrameBuffer(Arc<Mutex<Vec<u8>>>);

impl FrameBuffer {
    fn lock(&self) -> parking_lot::MutexGuard<'_, Vec<u8>> {
        self.0.lock()
    }
}

impl Write for FrameBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct RecordingTerminal {
        written: Arc<Mutex<Vec<u8>>>,
        raw: Arc<AtomicBool>,
    }

    impl Terminal for RecordingTerminal {
        fn write(&self, bytes: &[u8]) -> io::Result<()> {
            self.written.lock().extend_from_slice(bytes);
            Ok(())
        }

        fn raw(&self, on: bool) -> io::Result<()> {
            self.raw.store(on, Ordering::SeqCst);
            Ok(())
        }
    }

    impl RecordingTerminal {
        /// Returns whether the terminal was restored.
        fn is_restored(&self) -> bool {
            let mut parser = vt100::Parser::new(24.try_into().unwrap(), 80.try_into().unwrap(), 0);
            parser.process(&self.written.lock());
            let screen = parser.screen();
            !self.raw.load(Ordering::SeqCst)
                && !screen.alternate_screen()
                && !screen.hide_cursor()
                && !screen.bracketed_paste()
                && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
        }
    }

    #[test]
    fn guard_restores_the_terminal_at_the_end_and_before_a_panic_message() {
        let paper = RecordingTerminal::default();
        let guard = TerminalGuard::take(paper.clone(), true).unwrap();
        assert!(!paper.is_restored());
        guard.leave();
        assert!(paper.is_restored());
        drop(guard);
        let once = paper.written.lock().windows(LEAVE.len()).filter(|bytes| *bytes == LEAVE).count();
        assert_eq!(once, 1, "given back once");

        let paper = RecordingTerminal::default();
        let reported = Arc::new(AtomicBool::new(false));
        let (seen, hook_terminal) = (paper.clone(), Arc::clone(&reported));
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |_| hook_terminal.store(seen.is_restored(), Ordering::SeqCst)));
        let hers = paper.clone();
        let thread = std::thread::spawn(move || {
            let mut guard = TerminalGuard::take(hers, true).unwrap();
            guard.frames().write_all(b"\x1b[31mhalf a fra").unwrap();
            guard.mouse(true).unwrap();
            panic!("on purpose");
        });
        assert!(thread.join().is_err());
        let _ = std::panic::take_hook();
        std::panic::set_hook(before);
        assert!(paper.is_restored());
        assert!(reported.load(Ordering::SeqCst), "the terminal was ours no more when the panic was told of");
    }

    #[test]
    fn guard_writes_sixteen_colours_portably() {
        for (ours, theirs) in [
            ("\x1b[38;5;4mx 38;5;4m", "\x1b[34mx 38;5;4m"),
            ("\x1b[1;38;5;8;48;5;15m", "\x1b[1;90;107m"),
            ("\x1b[38;5;2;49m\x1b[0m", "\x1b[32;49m\x1b[0m"),
            ("\x1b[3;38H\x1b[?25l\x1b[m\x1b[", "\x1b[3;38H\x1b[?25l\x1b[m\x1b["),
        ] {
            assert_eq!(String::from_utf8(plain(ours.as_bytes())).unwrap(), theirs);
        }
    }

    #[test]
    fn guard_writes_a_frame_at_once_and_only_base64_to_the_clipboard() {
        let paper = RecordingTerminal::default();
        let guard = TerminalGuard::take(paper.clone(), false).unwrap();
        paper.written.lock().clear();
        let mut frames = guard.frames();
        frames.write_all(b"one").unwrap();
        assert!(paper.written.lock().is_empty());
        frames.flush().unwrap();
        assert!(paper.written.lock().is_empty(), "clearing and drawing are one frame");
        guard.show().unwrap();
        guard.show().unwrap();
        assert_eq!(*paper.written.lock(), b"\x1b[?2026hone\x1b[?2026l");
        paper.written.lock().clear();
        guard.copy("\x07\x1b]0;x\x07").unwrap();
        let written = String::from_utf8(paper.written.lock().clone()).unwrap();
        let inner = written.strip_prefix("\x1b]52;c;").unwrap().strip_suffix('\x07').unwrap();
        assert!(inner.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b)), "{written:?}");
    }
}
