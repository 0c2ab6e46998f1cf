//! The folder of holders: who is found there, and how one is stopped.

use super::*;

/// A new path for the socket of a runtime's holder.
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

/// A holder, or what one left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundHolder {
    /// Its runtime's id, as the file's name has it.
    pub runtime: String,
    /// Its socket, or the file it left.
    pub path: PathBuf,
    /// It left: its runtime has ended, and nobody has heard of it yet.
    pub left: bool,
}

/// Every holder in the folder, and everything that one left, in the order of their names. A socket that nobody listens
/// at is removed, as is litter. A gateway that is connected to one stays so. A folder that is not there is empty.
/// Blocks for as long as looking into a folder takes.
pub fn find_holders(dir: &Path) -> Vec<FoundHolder> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut found: Vec<FoundHolder> = entries.filter_map(|entry| read_holder(entry.ok()?.path())).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Stops the runtime of the holder that listens at `socket`: its stdin is closed; after `stdin` its family gets SIGTERM,
/// after another `term` SIGKILL. For when no gateway runs: one that is connected to the holder loses it. What the runtime
/// has said and no gateway has taken is left for the next one. Blocks until the runtime has ended and its holder is gone.
///
/// # Errors
/// In words: nobody there, not ours, another version, not ended 20 s after it should have.
pub fn stop(socket: &Path, stdin: Duration, term: Duration) -> Result<(), String> {
    let what = |why: &dyn std::fmt::Display| format!("{}: {why}", socket.display());
    let mut stream = std::os::unix::net::UnixStream::connect(socket).map_err(|why| what(&why))?;
    stream.set_read_timeout(Some(WELCOME_WAIT)).map_err(|why| what(&why))?;
    let mut said = Vec::new();
    ToHolder::Hello { version: OLDEST, newest: VERSION }.encode(&mut said);
    stream.write_all(&said).map_err(|why| what(&why))?;
    let (mut decoder, mut buf) = (Decoder::default(), vec![0; 64 * 1024]);
    loop {
        while let Some(frame) = decoder.frame().map_err(|why| what(&why))? {
            match FromHolder::parse(frame).map_err(|why| what(&why))? {
                FromHolder::Welcome(welcome) => {
                    known(welcome).map_err(|why| what(&why))?;
                    stream.set_read_timeout(Some(stdin + term + STOP_SLACK)).map_err(|why| what(&why))?;
                    said.clear();
                    ToHolder::Stop { stdin, term }.encode(&mut said);
                    stream.write_all(&said).map_err(|why| what(&why))?;
                }
                // Not acknowledged, so that nothing of what came is lost: the holder writes it down and goes. A gateway that
                // started before it is gone would take the runtime for one that runs.
                FromHolder::Exited { .. } => {
                    drop(stream);
                    return gone(socket).map_err(|why| what(&why));
                }
                FromHolder::Bye { why } => return Err(what(&why)),
                _ => {}
            }
        }
        match stream.read(&mut buf) {
            Ok(0) => return Err(what(&"it hung up")),
            Ok(read) => decoder.room().extend_from_slice(&buf[..read]),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Err(what(&"its runtime does not end")),
            Err(why) => return Err(what(&why)),
        }
    }
}

/// Waits until the holder that listens here has gone: its socket is the last that it removes.
pub(super) fn gone(socket: &Path) -> Result<(), &'static str> {
    let deadline = Instant::now() + STOP_SLACK;
    while socket.symlink_metadata().is_ok() {
        if Instant::now() >= deadline {
            return Err("its runtime has ended, but its holder does not exit");
        }
        // Whoever stops a runtime without a gateway waits in a thread of its own.
        std::thread::park_timeout(GONE_LOOK);
    }
    Ok(())
}

fn read_holder(path: PathBuf) -> Option<FoundHolder> {
    let runtime = path.file_stem()?.to_str()?.rsplit_once('.')?.0.to_owned();
    let left = match path.extension()?.to_str()? {
        "sock" => false,
        "end" => true,
        // What a holder binds or writes before it gets its name.
        "new" | "part" => {
            let age = std::fs::symlink_metadata(&path).ok()?.modified().ok()?.elapsed().unwrap_or_default();
            if age > LITTER_AGE {
                let _ = std::fs::remove_file(&path);
            }
            return None;
        }
        _ => return None,
    };
    if !left && let Err(why) = nobody(&path) {
        // Only a socket that nobody listens at says this.
        if why.kind() == io::ErrorKind::ConnectionRefused {
            let _ = std::fs::remove_file(&path);
        }
        return None;
    }
    Some(FoundHolder { runtime, path, left })
}

/// Knocks, and says nothing: a holder takes nobody for a gateway who did not greet it.
pub(super) fn nobody(path: &Path) -> io::Result<()> {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&socket2::SockAddr::unix(path)?) {
        // Many others knock.
        Err(why) if why.kind() == io::ErrorKind::WouldBlock => Ok(()),
        done => done,
    }
}
