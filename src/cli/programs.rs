//! Paths of programs.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The program's path, found in the same way as by a shell.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let runs = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| runs(path));
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| runs(path))
}

/// The path of this program, which is also the demo agent and the holder.
pub(crate) fn this_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find the path of the plexus program")
}
