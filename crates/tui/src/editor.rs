//! The user's editor for a changed file: its program and arguments, and the check whether the file may be opened.

use std::path::{Component, Path, PathBuf};

/// Editors that take the line as `+LINE` before the file.
const PLUS: &[&str] =
    &["vi", "vim", "nvim", "view", "nano", "pico", "emacs", "emacsclient", "micro", "kak", "joe", "ne", "mg", "jed"];
/// Editors that take `FILE:LINE`.
const COLON: &[&str] = &["hx", "helix", "zed", "zeditor", "subl", "lapce"];
/// Editors that take `--goto FILE:LINE`.
const GOTO: &[&str] = &["code", "code-insiders", "codium", "cursor", "windsurf"];

/// The editor that the user chose: `VISUAL`, else `EDITOR`.
pub(crate) fn chosen(variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let none = "no editor is configured: set EDITOR, such as EDITOR=vim, and start plexus attach again";
    set("VISUAL").or_else(|| set("EDITOR")).ok_or_else(|| none.to_owned())
}

/// The program and its arguments. The editor's words are split at blanks; no shell reads them.
pub(crate) fn command(editor: &str, path: &Path, line: usize) -> Vec<String> {
    let mut text: Vec<String> = editor.split_whitespace().map(str::to_owned).collect();
    let name = text.first().and_then(|program| Path::new(program).file_name()).and_then(|name| name.to_str());
    let name = name.unwrap_or_default().to_owned();
    let path = path.display().to_string();
    if PLUS.contains(&&*name) {
        text.extend([format!("+{line}"), path]);
    } else if COLON.contains(&&*name) {
        text.push(format!("{path}:{line}"));
    } else if GOTO.contains(&&*name) {
        text.extend(["--goto".to_owned(), format!("{path}:{line}")]);
    } else {
        text.push(path);
    }
    text
}

/// The file of this machine that a path of the list names, below the session's folder.
pub(crate) fn file_below(root: &str, path: &str) -> Result<PathBuf, String> {
    let name = super::sanitize::line(path, 80);
    let relative = Path::new(path);
    if path.starts_with('"') {
        return Err(format!("{name} is not UTF-8: open it yourself"));
    }
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || path.is_empty() || !Path::new(root).is_absolute() {
        return Err(format!("{name} is not below the session's folder: it is not opened"));
    }
    let whole = Path::new(root).join(relative);
    let missing = |why: std::io::Error| format!("{name} cannot be opened on this machine: {why}");
    // Through a link, it would be a different file from the one on the screen.
    let resolved = whole.canonicalize().map_err(missing)?;
    let folder = Path::new(root).canonicalize().map_err(missing)?;
    if resolved != folder.join(relative) || !resolved.is_file() {
        return Err(format!("{name} is a link, or not a file: it is not opened"));
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editor_is_called_without_a_shell_and_at_the_line() {
        let called = |editor: &str| command(editor, Path::new("/w/a b;c.rs"), 7).join("|");
        assert_eq!(called("vim"), "vim|+7|/w/a b;c.rs");
        assert_eq!(called("/usr/bin/nvim -u NONE"), "/usr/bin/nvim|-u|NONE|+7|/w/a b;c.rs");
        assert_eq!(called("hx"), "hx|/w/a b;c.rs:7");
        assert_eq!(called("code --wait"), "code|--wait|--goto|/w/a b;c.rs:7");
        assert_eq!(called("mine $(x)"), "mine|$(x)|/w/a b;c.rs");
        let env = |visual: &'static str, editor: &'static str| {
            chosen(move |name| Some(if name == "VISUAL" { visual } else { editor }.to_owned()))
        };
        assert_eq!((env("v", "e"), env(" ", "e")), (Ok("v".into()), Ok("e".into())));
        assert!(env("", "").unwrap_err().contains("set EDITOR"));
    }

    #[test]
    fn editor_opens_only_files_below_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::write(root.join("src/a.rs"), "x").unwrap();
        std::fs::write(folder.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path().join("secret"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(folder.path(), root.join("up")).unwrap();
        let below = |path: &str| file_below(root.to_str().unwrap(), path);
        assert!(below("src/a.rs").unwrap().ends_with("root/src/a.rs"));
        for (path, why) in [
            ("../secret", "not below"),
            ("/etc/passwd", "not below"),
            ("", "not below"),
            ("src/./../../secret", "not below"),
            ("link", "is a link"),
            ("up/secret", "is a link"),
            ("src", "or not a file"),
            ("gone\u{1b}", "cannot be opened"),
            ("\"no\\377utf8\"", "not UTF-8"),
        ] {
            let output = below(path).unwrap_err();
            assert!(output.contains(why) && !output.contains('\u{1b}'), "{path}: {output}");
        }
        assert!(file_below("relative", "src/a.rs").is_err());
    }
}
