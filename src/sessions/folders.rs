//! The check that a path lies in a folder, with symbolic links resolved.

use std::path::{Component, Path, PathBuf};

/// Returns whether `path` is `folder` or lies in it once symbolic links are resolved; a path that does not exist counts as where it would
/// be created. `None` if that cannot be determined: the path is relative, a dangling link, or goes up (`..`) through a missing folder.
pub fn is_inside(path: &Path, folder: &Path) -> Option<bool> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    Some(resolved(path)?.starts_with(folder))
}

/// Resolves the symbolic links of the part of the path that exists.
fn resolved(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let mut missing = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(mut real) = ancestor.canonicalize() {
            real.extend(missing.iter().rev());
            return Some(real);
        }
        if ancestor.is_symlink() {
            // A dangling link may lead anywhere.
            return None;
        }
        // `None` for `..` and the root.
        missing.push(ancestor.file_name().filter(|_| ancestor.components().next_back() != Some(Component::ParentDir))?);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn folders_resolve_links_dots_and_missing_parts() {
        let dir = tempfile::tempdir().unwrap();
        let (home, work) = (dir.path().join("home"), dir.path().join("work"));
        std::fs::create_dir_all(home.join("deep")).unwrap();
        std::fs::create_dir_all(&work).unwrap();
        std::fs::write(home.join("token"), "t").unwrap();
        symlink(&home, work.join("link")).unwrap();
        symlink("../home/token", work.join("file")).unwrap();
        symlink("../home/new", work.join("dangling")).unwrap();
        symlink(dir.path(), dir.path().join("around")).unwrap();
        for (path, leads) in [
            ("home", Some(true)),
            ("home/", Some(true)),
            ("home/token", Some(true)),
            ("home/deep/../token", Some(true)),
            ("home/not/there/yet", Some(true)),
            ("work/link", Some(true)),
            ("work/link/token", Some(true)),
            ("work/link/new", Some(true)),
            ("work/file", Some(true)),
            ("around/around/home/token", Some(true)),
            ("work/../home/token", Some(true)),
            ("work", Some(false)),
            ("work/new", Some(false)),
            ("homely", Some(false)),
            ("home/..", Some(false)),
            ("work/new/../../home/token", None),
            ("work/dangling", None),
        ] {
            assert_eq!(is_inside(&dir.path().join(path), &home), leads, "{path}");
        }
        assert_eq!(is_inside(Path::new("home"), &home), None, "relative to what?");
        // The folder itself may be named by a link.
        assert_eq!(is_inside(&home.join("token"), &work.join("link")), Some(true));
    }
}
