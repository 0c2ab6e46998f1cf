//! The local administrator's token: a file that only its owner can read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use data_encoding::BASE32_NOPAD;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use super::AuthError;
use plexus_protocol::Timestamp;

/// The name of the token file in the state folder.
pub const TOKEN_FILE: &str = "token";

/// Number of random bytes of a token: 256 bits, which cannot be guessed at any rate.
const TOKEN_BYTES: usize = 32;
/// Prefix of every token, by which users and secret scanners recognise one.
const TOKEN_PREFIX: &str = "plx_";
/// Maximum size of a token file that is read, in bytes; a larger one is refused.
const TOKEN_FILE_MAX: u64 = 256;
/// Mode bits that give access to users other than the owner.
const OTHER_USERS: u32 = 0o077;

/// The SHA-256 of a secret, stored and compared in its place.
pub(super) type Hash = [u8; 32];

/// The local token's hash and the time it was made.
pub(super) struct LocalToken {
    pub(super) hash: Hash,
    pub(super) made_at: Timestamp,
}

/// Returns the SHA-256 of a secret.
pub(super) fn hash(secret: &str) -> Hash {
    Sha256::digest(secret.as_bytes()).into()
}

/// Returns the CSRF value that a page sends with the cookie `token`: derived from the token, and not reversible.
pub fn csrf(token: &str) -> String {
    data_encoding::HEXLOWER.encode(&hash(&format!("plexus csrf {token}")))
}

/// Returns whether two secrets are equal. Takes the same time for all of the same length.
pub fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// Returns the index of `wanted` in `hashes`. Reads every byte of all of them, found or not.
pub(super) fn find<'a>(hashes: impl Iterator<Item = &'a Hash>, wanted: &Hash) -> Option<usize> {
    let (mut found, mut index) = (Choice::from(0), 0u64);
    for (n, hash) in hashes.enumerate() {
        let same = hash.ct_eq(wanted);
        index.conditional_assign(&(n as u64), same);
        found |= same;
    }
    bool::from(found).then_some(usize::try_from(index).unwrap_or_default())
}

/// Returns `N` bytes of the kernel's randomness, in lower-case base32.
pub(super) fn random_text<const N: usize>() -> Result<String, AuthError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| AuthError::Random(error.to_string()))?;
    Ok(BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
}

/// Returns a new token.
pub(super) fn new_token() -> Result<String, AuthError> {
    Ok(format!("{TOKEN_PREFIX}{}", random_text::<TOKEN_BYTES>()?))
}

/// Reads the token of the gateway with its state in `home`, for the command line, which runs as the same user.
///
/// # Errors
/// [`AuthError::NoToken`] if no gateway ever started there; [`AuthError::Unsafe`] if the file is not a plain file of this
/// user's; [`AuthError::File`].
pub fn read_token(home: &Path) -> Result<String, AuthError> {
    read(home)?.map(|(token, _)| token).ok_or_else(|| AuthError::NoToken(home.join(TOKEN_FILE)))
}

/// Makes the folder and the token, or checks existing ones.
///
/// A folder of this user with access for others loses that access. A token that others could read is replaced. A folder or
/// file of another user is refused, since that user could change it at any time.
pub(super) fn open(home: &Path) -> Result<LocalToken, AuthError> {
    secure_folder(home)?;
    if let Some((token, meta)) = read(home)? {
        if meta.mode() & OTHER_USERS == 0 {
            return Ok(LocalToken { hash: hash(&token), made_at: made_at(&meta) });
        }
        tracing::warn!(
            "the token was readable by other users and has been replaced; local commands use the new one automatically"
        );
        let token = write(home, true)?;
        return Ok(LocalToken { hash: hash(&token), made_at: std::time::SystemTime::now().into() });
    }
    let token = write(home, false)?;
    Ok(LocalToken { hash: hash(&token), made_at: std::time::SystemTime::now().into() })
}

fn made_at(meta: &std::fs::Metadata) -> Timestamp {
    meta.modified().map(Timestamp::from).unwrap_or_default()
}

fn secure_folder(home: &Path) -> Result<(), AuthError> {
    let fail = |error| AuthError::file(home, &error);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(fail)?;
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::DIRECTORY | OFlags::CLOEXEC).bits().cast_signed())
        .open(home)
        .map_err(fail)?;
    let meta = folder.metadata().map_err(fail)?;
    own(home, &meta)?;
    if meta.mode() & 0o777 != 0o700 {
        if meta.mode() & OTHER_USERS != 0 {
            tracing::warn!(folder = ?home, "the state folder was accessible to other users; its mode is now 0700");
        }
        folder.set_permissions(std::fs::Permissions::from_mode(0o700)).map_err(fail)?;
    }
    Ok(())
}

fn own(path: &Path, meta: &std::fs::Metadata) -> Result<(), AuthError> {
    let me = rustix::process::geteuid().as_raw();
    if meta.uid() == me {
        return Ok(());
    }
    Err(AuthError::Unsafe(
        path.into(),
        format!(
            "it belongs to user {}, not to the current user ({me}): choose another PLEXUS_HOME, or change its owner",
            meta.uid()
        ),
    ))
}

fn read(home: &Path) -> Result<Option<(String, std::fs::Metadata)>, AuthError> {
    let path = home.join(TOKEN_FILE);
    let fail = |error| AuthError::file(&path, &error);
    // NOFOLLOW: a planted link must not cause a read of another file. NONBLOCK: a pipe must not cause a wait.
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(AuthError::Unsafe(
                path,
                "it is a symbolic link: remove it, and a new token will be created".into(),
            ));
        }
        Err(error) => return Err(fail(error)),
    };
    let meta = file.metadata().map_err(fail)?;
    if !meta.is_file() {
        return Err(AuthError::Unsafe(path, "it is not a file: remove it, and a new token will be created".into()));
    }
    own(&path, &meta)?;
    let mut text = String::new();
    file.take(TOKEN_FILE_MAX).read_to_string(&mut text).map_err(fail)?;
    let token = text.trim_end_matches(['\n', '\r']);
    let body = token.strip_prefix(TOKEN_PREFIX).map(str::to_ascii_uppercase);
    let valid =
        body.and_then(|body| BASE32_NOPAD.decode(body.as_bytes()).ok()).is_some_and(|bytes| bytes.len() == TOKEN_BYTES);
    if !valid {
        return Err(AuthError::Unsafe(path, "it contains no token: remove it, and a new token will be created".into()));
    }
    Ok(Some((token.to_owned(), meta)))
}

/// Writes a file that only its owner can read, complete and synced before it has its name: first under the name with `.new`.
///
/// # Errors
/// The system's error; the file is unchanged.
pub fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    // The leftover of an interrupted write.
    let _ = std::fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

/// Writes a new token, first complete and synced under another name, so that no reader gets a part of one. Unless `replace` is set, a
/// token that another process made in the meantime stays and is returned.
fn write(home: &Path, replace: bool) -> Result<String, AuthError> {
    let path = home.join(TOKEN_FILE);
    let fail = |error| AuthError::file(&path, &error);
    let token = new_token()?;
    let temporary = home.join(format!(".{TOKEN_FILE}.{}", random_text::<10>()?));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).map_err(fail)?;
    let written = file
        .set_permissions(std::fs::Permissions::from_mode(0o600))
        .and_then(|()| file.write_all(format!("{token}\n").as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(
            |()| if replace { std::fs::rename(&temporary, &path) } else { std::fs::hard_link(&temporary, &path) },
        );
    let _ = std::fs::remove_file(&temporary);
    match written {
        Ok(()) => {
            File::open(home).and_then(|folder| folder.sync_all()).map_err(fail)?;
            Ok(token)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_token(home),
        Err(error) => Err(fail(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn token_file_is_made_once_and_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("a/plexus");
        let first = open(&home).unwrap();
        assert_eq!((mode(&home), mode(&home.join(TOKEN_FILE))), (0o700, 0o600));
        assert_eq!(open(&home).unwrap().hash, first.hash);
        let token = read_token(&home).unwrap();
        assert_eq!(hash(&token), first.hash);
        assert_eq!(token.len(), TOKEN_PREFIX.len() + 52, "256 bits");
        assert_eq!(std::fs::read_dir(&home).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn token_readable_by_others_is_replaced_and_its_folder_closed() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let first = open(home).unwrap();
        std::fs::set_permissions(home, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(open(home).unwrap().hash, first.hash);
        assert_eq!(mode(home), 0o700);
        for open_mode in [0o644, 0o640, 0o602] {
            let before = open(home).unwrap();
            std::fs::set_permissions(home.join(TOKEN_FILE), std::fs::Permissions::from_mode(open_mode)).unwrap();
            assert_ne!(open(home).unwrap().hash, before.hash, "{open_mode:o}");
            assert_eq!(mode(&home.join(TOKEN_FILE)), 0o600);
        }
    }

    #[test]
    fn token_file_with_other_content_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let path = home.join(TOKEN_FILE);
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(elsewhere.path(), new_token().unwrap()).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &path).unwrap();
        assert!(matches!(open(home), Err(AuthError::Unsafe(..))), "a symbolic link");
        std::fs::remove_file(&path).unwrap();
        for junk in ["", "\n", "hunter2", "plx_", "plx_aaaa", &"x".repeat(9999)] {
            std::fs::write(&path, junk).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            assert!(matches!(open(home), Err(AuthError::Unsafe(..))), "{junk:.20}");
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(open(home).is_err(), "a folder");
    }

    #[test]
    fn token_made_by_many_at_once_is_the_same_for_all() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let hashes: Vec<Hash> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| open(home).unwrap().hash)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(hashes.iter().all(|one| *one == hashes[0]));
    }
}
