//! The folder of holders: finding them, and stopping one.

use super::*;

/// Returns a new path for the socket of a runtime's holder.
pub(super) fn socket(dir: &Path, runtime: &RuntimeId) -> Result<PathBuf, String> {
    let mut random = [0; 5];
    getrandom::fill(&mut random).map_err(|why| format!("the system provides no random numbers: {why}"))?;
    let random = data_encoding::BASE32_NOPAD.encode(&random).to_ascii_lowercase();
    let dir = std::path::absolute(dir).map_err(|why| format!("{}: {why}", dir.display()))?;
    let path = dir.join(format!("{runtime}.{random}.sock"));
    let len = path.as_os_str().len();
    if len > PATH_MAX {
        return Err(format!(
            "the path of its holder's socket, {}, is {len} bytes long, but at most {PATH_MAX} are possible: set \
             PLEXUS_HOME to a shorter path, or give the runtime a shorter id",
            path.display()
        ));
    }
    Ok(path)
}

/// A holder, or the file that one left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundHolder {
    /// The id of its runtime, from the file's name.
    pub runtime: String,
    /// The holder's socket, or the file that it left.
    pub path: PathBuf,
    /// `true` if the path is a file: the runtime has ended, and no gateway has read its last messages.
    pub left: bool,
}

/// Returns every holder in the folder, and every file that one left, sorted by name. Removes sockets without a listener, and leftovers of
/// crashes. Replaces no gateway's connection. A missing folder counts as empty. Blocks while it reads the directory.
pub fn find_holders(dir: &Path) -> Vec<FoundHolder> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut found: Vec<FoundHolder> = entries.filter_map(|entry| read_holder(entry.ok()?.path())).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Stops the runtime of the holder that listens at `socket`: closes its stdin; after `stdin` its process tree gets SIGTERM, after another
/// `term` SIGKILL. For use without a gateway: a connected one loses its connection. Output that no gateway has acknowledged is left for
/// the next one. Blocks until the runtime and its holder have ended.
///
/// # Errors
/// A message: no listener, another user's process, another version, or not ended 20 s after its timeouts.
pub fn stop(socket: &Path, stdin: Duration, term: Duration) -> Result<(), String> {
    let describe = |why: &dyn std::fmt::Display| format!("{}: {why}", socket.display());
    let mut stream = std::os::unix::net::UnixStream::connect(socket).map_err(|why| describe(&why))?;
    stream.set_read_timeout(Some(WELCOME_WAIT)).map_err(|why| describe(&why))?;
    let mut message = Vec::new();
    ToHolder::Hello { version: OLDEST, newest: VERSION }.encode(&mut message);
    stream.write_all(&message).map_err(|why| describe(&why))?;
    let (mut decoder, mut buf) = (Decoder::default(), vec![0; 64 * 1024]);
    loop {
        while let Some(frame) = decoder.frame().map_err(|why| describe(&why))? {
            match FromHolder::parse(frame).map_err(|why| describe(&why))? {
                FromHolder::Welcome(welcome) => {
                    check_version(welcome).map_err(|why| describe(&why))?;
                    stream.set_read_timeout(Some(stdin + term + STOP_SLACK)).map_err(|why| describe(&why))?;
                    message.clear();
                    ToHolder::Stop { stdin, term }.encode(&mut message);
                    stream.write_all(&message).map_err(|why| describe(&why))?;
                }
                // Not acknowledged, so that no output is lost: the holder writes it to a file and ends. A gateway that started before the
                // end of the holder would regard the runtime as running.
                FromHolder::Exited { .. } => {
                    drop(stream);
                    return wait_until_removed(socket).map_err(|why| describe(&why));
                }
                FromHolder::Bye { reason: why } => return Err(describe(&why)),
                _ => {}
            }
        }
        match stream.read(&mut buf) {
            Ok(0) => return Err(describe(&"it hung up")),
            Ok(read) => decoder.buffer().extend_from_slice(&buf[..read]),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Err(describe(&"its runtime does not end")),
            Err(why) => return Err(describe(&why)),
        }
    }
}

/// Waits until the holder that listens here has ended: it removes its socket last.
pub(super) fn wait_until_removed(socket: &Path) -> Result<(), &'static str> {
    let deadline = Instant::now() + STOP_SLACK;
    while socket.symlink_metadata().is_ok() {
        if Instant::now() >= deadline {
            return Err("its runtime has ended, but its holder does not exit");
        }
        // Callers without a gateway run this in a thread of its own.
        std::thread::park_timeout(REMOVED_POLL_INTERVAL);
    }
    Ok(())
}

fn read_holder(path: PathBuf) -> Option<FoundHolder> {
    let runtime = path.file_stem()?.to_str()?.rsplit_once('.')?.0.to_owned();
    let left = match path.extension()?.to_str()? {
        "sock" => false,
        "end" => true,
        // A temporary name, which the holder uses before it renames the file.
        "new" | "part" => {
            let age = std::fs::symlink_metadata(&path).ok()?.modified().ok()?.elapsed().unwrap_or_default();
            if age > TEMPORARY_AGE {
                let _ = std::fs::remove_file(&path);
            }
            return None;
        }
        _ => return None,
    };
    if !left && let Err(why) = probe(&path) {
        // Only a socket without a listener gives this error.
        if why.kind() == io::ErrorKind::ConnectionRefused {
            let _ = std::fs::remove_file(&path);
        }
        return None;
    }
    Some(FoundHolder { runtime, path, left })
}

/// Connects without a message: a holder ignores a peer that does not send `Hello`.
pub(super) fn probe(path: &Path) -> io::Result<()> {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&socket2::SockAddr::unix(path)?) {
        // The backlog is full: there is a listener.
        Err(why) if why.kind() == io::ErrorKind::WouldBlock => Ok(()),
        done => done,
    }
}
