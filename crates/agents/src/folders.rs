//! `GET /v1/folders` and `GET /v1/folders/files`: folders in which a session can work, and their files. Recently used folders are listed
//! for devices that may prompt; the folders of the machine and their files for administrators.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use http::StatusCode;
use plexus_protocol::api::KnownItems;
use plexus_protocol::api::devices::Target;
use plexus_protocol::api::folders::{Files, FolderEntry, Folders, RecentFolder};
use plexus_protocol::{Scope, Timestamp};
use tokio::sync::Semaphore;

use plexus_auth::Admin;
use plexus_router::described::{FILES_LIMIT, FILES_QUERY, Parameter, matching};
use plexus_router::guard::{Call, Route};
use plexus_router::http::{files_found, files_requested};
use plexus_router::reply::{RouteResult, bad_query, gateway, json, parameter};
use plexus_router::routes::{ADMIN, GET, NOTHING, PROMPTS, route};
use plexus_router::{Core, Problem};

/// Maximum number of folders in a response; `more` is set if there are others.
const FOLDERS_MAX: usize = 500;
/// Maximum number of entries of a folder that are read; `more` is set if there are others.
const ENTRIES_MAX: usize = 20_000;
/// Maximum number of recently used folders in a response.
const RECENT_MAX: usize = 20;
/// Maximum number of recently used folders that are checked: some may no longer exist.
const RECENT_CHECKED: usize = 40;
/// Maximum time for the disk to respond; after it the call fails with `folder_slow`.
const DISK_WAIT: Duration = Duration::from_secs(5);
/// Maximum number of concurrent reads: a disk that hangs blocks this many threads, and further calls fail with `folder_slow`.
const READS: usize = 4;

static READING: Semaphore = Semaphore::const_new(READS);

const FOLDERS_UNDER: Parameter = Parameter::query(
    "under",
    "An absolute path, or one that begins with `~/`: the folders in it; default the home folder. Needs `admin`",
    || matching("^(~?/[^\\x00]*|~)?$"),
);
const FOLDERS_PREFIX: Parameter = Parameter::query(
    "prefix",
    "Only folders whose names begin so; those that begin with a dot are left out otherwise",
    || matching("^[^/\\x00]*$"),
);
const FILES_UNDER: Parameter =
    Parameter::query("under", "The folder: an absolute path, or one that begins with `~/`", || {
        matching("^(~?/[^\\x00]*|~)$")
    })
    .required();

/// Returns the routes of folders and of the files in them.
#[rustfmt::skip] // a route a line, then its bodies
pub fn routes() -> Vec<Route<Core>> {
    vec![
        route(GET, "/v1/folders", PROMPTS, NOTHING, "Folders that sessions used; for administrators also the folders below a path", list)
            .response::<Folders>(200).with(&[&FOLDERS_UNDER, &FOLDERS_PREFIX]),
        route(GET, "/v1/folders/files", ADMIN, NOTHING, "Files of a folder whose paths fit, best first", folder_files)
            .response::<Files>(200).with(&[&FILES_UNDER, &FILES_QUERY, &FILES_LIMIT]),
    ]
}

/// Lists folders.
async fn list(state: Core, call: Call) -> RouteResult {
    let (under, prefix) = (parameter(&call, "under").filter(|under| !under.is_empty()), parameter(&call, "prefix"));
    let caller = call.caller()?;
    let is_admin = caller.device().grant.covers(Scope::Admin, Target::Gateway);
    if under.is_some() {
        gateway::<Admin>(&call)?;
    }
    let home = std::env::home_dir().filter(|home| home.is_absolute()).unwrap_or_else(|| PathBuf::from("/"));
    let under = under.map_or_else(|| Ok(home.clone()), |text| folder_of(&text, &home))?;
    let prefix = prefix.unwrap_or_default();
    if prefix.contains(['/', '\0']) {
        return Err(bad_query("`prefix` is the beginning of a name: give the folder above it as `under`".into()));
    }
    let mut known = HashSet::new();
    let ranked = state.directory.ranked().into_iter().map(|(_, session)| session);
    let used: Vec<(String, Timestamp)> = ranked
        .filter(|session| caller.sees(&session.session_id, &session.runtime_id) && session.cwd.starts_with('/'))
        .filter(|session| known.insert(session.cwd.clone()))
        .take(RECENT_CHECKED)
        .map(|session| (session.cwd.clone(), session.updated_at))
        .collect();
    let turn = tokio::time::timeout(DISK_WAIT, READING.acquire()).await.map_err(|_| slow())?;
    let turn = turn.map_err(|_| Problem::internal())?;
    let listing = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let recent = recent(used).into();
        if !is_admin {
            return Ok(Folders { under: None, parent: None, folders: KnownItems::default(), more: false, recent });
        }
        let (folders, more) = below(&under, &prefix)?;
        let parent = under.parent().map(|parent| parent.display().to_string());
        Ok(Folders { under: Some(under.display().to_string()), parent, folders: folders.into(), more, recent })
    });
    let found: Result<Folders, Problem> =
        tokio::time::timeout(DISK_WAIT, listing).await.map_err(|_| slow())?.map_err(|_| Problem::internal())?;
    json(StatusCode::OK, &found?)
}

/// Lists the files of a folder in which a session may be opened, for prompts that name them.
async fn folder_files(state: Core, call: Call) -> RouteResult {
    let permit = gateway::<Admin>(&call)?;
    let home = std::env::home_dir().filter(|home| home.is_absolute()).unwrap_or_else(|| PathBuf::from("/"));
    let under = parameter(&call, "under").filter(|under| !under.is_empty());
    let under = under.ok_or_else(|| bad_query("`under` is missing: name the folder".into()))?;
    let folder = folder_of(&under, &home)?;
    let (query, limit) = files_requested(&call)?;
    let opened = tokio::time::timeout(DISK_WAIT, tokio::fs::read_dir(&folder)).await.map_err(|_| slow())?;
    drop(opened.map_err(|error| unreadable(&folder, &error))?);
    let folder = folder.display().to_string();
    let found = state.directory.files().in_folder(&permit, folder, query, limit).await?;
    json(StatusCode::OK, &files_found(found))
}

fn slow() -> Problem {
    let message = "the disk did not answer within 5 seconds: try again, or type the whole path";
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "folder_slow", message)
}

/// Returns the reason why a folder cannot be read.
fn unreadable(folder: &Path, error: &std::io::Error) -> Problem {
    let path = folder.display();
    match error.kind() {
        ErrorKind::NotFound => {
            Problem::new(StatusCode::NOT_FOUND, "folder_not_found", format!("there is no folder {path}"))
        }
        ErrorKind::NotADirectory => {
            Problem::new(StatusCode::NOT_FOUND, "folder_not_found", format!("{path} is a file, not a folder"))
        }
        _ => Problem::new(StatusCode::FORBIDDEN, "folder_unreadable", format!("{path} cannot be read: {error}")),
    }
}

/// Returns the folder that a user named: absolute, or below the home folder; `.` and `..` are resolved.
fn folder_of(text: &str, home: &Path) -> Result<PathBuf, Problem> {
    let named = match text.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(text),
    };
    if !named.is_absolute() || text.contains('\0') {
        return Err(bad_query("`under` must be an absolute path, or begin with `~/`".into()));
    }
    let mut clean = PathBuf::new();
    for part in named.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    Ok(clean)
}

/// Returns the folders in a folder whose names begin with `prefix`, by name, and whether there are more.
fn below(under: &Path, prefix: &str) -> Result<(Vec<FolderEntry>, bool), Problem> {
    let entries = std::fs::read_dir(under).map_err(|error| unreadable(under, &error))?;
    let prefix = prefix.to_lowercase();
    let mut found = Vec::new();
    let mut more = false;
    for (n, entry) in entries.enumerate() {
        if n >= ENTRIES_MAX {
            more = true;
            break;
        }
        let Ok(entry) = entry else { continue };
        let Ok(name) = entry.file_name().into_string() else { continue };
        let lower = name.to_lowercase();
        if !lower.starts_with(&prefix) || (name.starts_with('.') && !prefix.starts_with('.')) {
            continue;
        }
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() || (kind.is_symlink() && entry.path().is_dir()) {
            found.push((lower, name, kind.is_symlink()));
        }
    }
    found.sort_unstable();
    more |= found.len() > FOLDERS_MAX;
    found.truncate(FOLDERS_MAX);
    let entry = |(_, name, link): (String, String, bool)| {
        let path = under.join(&name);
        let git = path.join(".git").exists();
        Some(FolderEntry { path: path.to_str()?.to_owned(), name, git, link })
    };
    Ok((found.into_iter().filter_map(entry).collect(), more))
}

/// Returns the folders that exist.
fn recent(used: Vec<(String, Timestamp)>) -> Vec<RecentFolder> {
    let existing = used.into_iter().filter(|(path, _)| Path::new(path).is_dir()).take(RECENT_MAX);
    let folder = |(path, used_at): (String, Timestamp)| {
        let name = path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("/");
        RecentFolder { name: name.to_owned(), git: Path::new(&path).join(".git").exists(), path, used_at }
    };
    existing.map(folder).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn folders_are_sorted_marked_and_hostile_names_are_text() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["b", "A", "c/.git", ".hidden", "<img src=x>", "new\nline"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::fs::create_dir(dir.path().join(std::ffi::OsStr::from_bytes(b"bad\xff"))).unwrap();
        std::fs::write(at("file"), "").unwrap();
        symlink(at("b"), at("to-b")).unwrap();
        symlink(at("file"), at("to-file")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        let names = |prefix: &str| {
            let (found, more) = below(dir.path(), prefix).unwrap();
            assert!(!more);
            found.into_iter().map(|one| (one.name, one.git, one.link)).collect::<Vec<_>>()
        };
        let is = |name: &str, git, link| (name.to_owned(), git, link);
        let all = [
            is("<img src=x>", false, false),
            is("A", false, false),
            is("b", false, false),
            is("c", true, false),
            is("new\nline", false, false),
            is("to-b", false, true),
        ];
        assert_eq!(names(""), all);
        assert_eq!(names("a"), [is("A", false, false)], "however it is typed");
        assert_eq!(names("."), [is(".hidden", false, false)]);
        assert!(names("zz").is_empty());
    }

    #[test]
    fn folders_beyond_the_most_are_left_out_and_it_is_said() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..=FOLDERS_MAX {
            std::fs::create_dir(dir.path().join(format!("d{n:04}"))).unwrap();
        }
        let (found, more) = below(dir.path(), "").unwrap();
        assert_eq!((found.len(), more), (FOLDERS_MAX, true));
        let (found, more) = below(dir.path(), "d0500").unwrap();
        assert_eq!((found.len(), more), (1, false), "a prefix finds those too");
    }

    #[test]
    fn folder_that_is_missing_or_a_file_is_a_typed_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        for name in ["none", "file"] {
            assert_eq!(below(&dir.path().join(name), "").unwrap_err().code, "folder_not_found");
        }
    }

    #[test]
    fn folder_is_named_as_in_a_shell() {
        let home = Path::new("/home/me");
        for (text, path) in
            [("/", "/"), ("/a/../b/./c", "/b/c"), ("/../..", "/"), ("~", "/home/me"), ("~/x", "/home/me/x")]
        {
            assert_eq!(folder_of(text, home).unwrap(), Path::new(path), "{text}");
        }
        for text in ["a", "./a", "~other/x", "/a\0b"] {
            assert_eq!(folder_of(text, home).unwrap_err().code, "bad_query", "{text}");
        }
    }
}
