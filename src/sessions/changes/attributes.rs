//! Which files git stores in another form than they have on the disk (filters, encodings): those are not compared.

use std::collections::HashMap;
use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::beneath::Beneath;

/// Most bytes of one file of attributes; a longer one makes all files below it count as stored in another form.
const BYTES: u64 = 256 << 10;
/// Most lines of one file of attributes.
const LINES: usize = 4000;

/// The attributes of a folder's files, read where they are asked for.
pub(super) struct Attributes<'a> {
    folder: &'a Beneath,
    /// By folder, with a slash at its end.
    known: HashMap<Vec<u8>, Option<Gitignore>>,
    /// Names of macros that stand for a filter.
    macros: Vec<String>,
}

impl<'a> Attributes<'a> {
    pub(super) fn of(folder: &'a Beneath) -> Self {
        Self { folder, known: HashMap::new(), macros: Vec::new() }
    }

    /// Whether a file is stored in another form.
    pub(super) fn is_filtered(&mut self, path: &[u8]) -> bool {
        use std::os::unix::ffi::OsStrExt as _;
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at + 1);
        let folders: Vec<&[u8]> = std::iter::once(0).chain(ends).map(|end| &path[..end]).collect();
        for folder in &folders {
            if !self.known.contains_key(*folder) {
                let rules = self.rules(folder);
                self.known.insert(folder.to_vec(), rules);
            }
        }
        for folder in folders.iter().rev() {
            let Some(Some(rules)) = self.known.get(*folder) else { continue };
            let name = Path::new(std::ffi::OsStr::from_bytes(&path[folder.len()..]));
            match rules.matched(name, false) {
                ignore::Match::Ignore(_) => return true,
                ignore::Match::Whitelist(_) => return false,
                ignore::Match::None => {}
            }
        }
        false
    }

    fn rules(&mut self, folder: &[u8]) -> Option<Gitignore> {
        let text = match self.folder.read(&[folder, b".gitattributes"].concat(), BYTES) {
            Ok(text) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => "* filter=unknown".to_owned(),
            Err(_) => return None,
        };
        let mut builder = GitignoreBuilder::new("");
        let mut any = false;
        for line in text.lines().take(LINES) {
            if let Some(rule) = rule_of(line, &mut self.macros) {
                any |= builder.add_line(None, &rule).is_ok();
            }
        }
        if any { builder.build().ok() } else { None }
    }
}

/// A line of attributes as a rule that fits files in another form; `None` if it says nothing of that.
fn rule_of(line: &str, macros: &mut Vec<String>) -> Option<String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (pattern, attributes) = match line.strip_prefix('"') {
        Some(quoted) => quoted.rsplit_once('"')?,
        None => line.split_once([' ', '\t'])?,
    };
    let mut filtered = None;
    for attribute in attributes.split_ascii_whitespace() {
        let name = attribute.trim_start_matches(['-', '!']).split('=').next().unwrap_or_default();
        if ["filter", "ident", "working-tree-encoding"].contains(&name) || macros.iter().any(|known| known == name) {
            filtered = Some(!attribute.starts_with(['-', '!']));
        }
    }
    let filtered = filtered?;
    if let Some(name) = pattern.strip_prefix("[attr]") {
        if filtered {
            macros.push(name.to_owned());
        }
        return None;
    }
    // In attributes neither of these has the meaning that it has in ignore rules.
    let pattern = pattern.trim_start_matches('!');
    Some(if filtered { pattern.to_owned() } else { format!("!{pattern}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_tell_which_files_are_stored_in_another_form() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(place.join("deep/er")).unwrap();
        let text = "# none\n*.bin filter=lfs diff=lfs -text\n*.txt eol=lf\n[attr]odd ident\n*.odd odd\n/top.c working-tree-encoding=UTF-16\n";
        std::fs::write(place.join(".gitattributes"), text).unwrap();
        std::fs::write(place.join("deep/.gitattributes"), "*.bin -filter\n").unwrap();
        let folder = Beneath::open(&place).unwrap();
        let mut attributes = Attributes::of(&folder);
        for (path, filtered) in [
            ("a.bin", true),
            ("other/a.bin", true),
            ("deep/a.bin", false),
            ("deep/er/a.bin", false),
            ("a.txt", false),
            ("a.odd", true),
            ("top.c", true),
            ("deep/top.c", false),
        ] {
            assert_eq!(attributes.is_filtered(path.as_bytes()), filtered, "{path}");
        }
    }
}
