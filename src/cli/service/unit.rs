//! The text of the service's file: the one in `deploy/`, with the paths of an installation.

use std::path::{Path, PathBuf};

use super::manager::Manager;

const SYSTEMD_UNIT: &str = include_str!("../../../deploy/plexus.service");
const LAUNCHD_AGENT: &str = include_str!("../../../deploy/io.plexus.gateway.plist");

/// The start of the line of the unit that sets `PATH`.
const SYSTEMD_PATH: &str = "Environment=PATH=";
/// The program in the launchd agent.
const LAUNCHD_PROGRAM: &str = "<string>@HOME@/.local/bin/plexus</string>";

/// The values that differ between installations.
#[derive(Debug)]
pub(super) struct UnitValues {
    pub(super) program: PathBuf,
    /// The folders in which agents are found; those of the file in `deploy/` follow.
    pub(super) folders: Vec<PathBuf>,
    /// The state folder, if it is not the default one.
    pub(super) state_folder: Option<PathBuf>,
    pub(super) user_home: PathBuf,
}

impl UnitValues {
    pub(super) fn text(&self, manager: Manager) -> String {
        let lines = match manager {
            Manager::Systemd => SYSTEMD_UNIT.lines().map(|line| self.systemd_line(line)).collect::<Vec<_>>(),
            Manager::Launchd => LAUNCHD_AGENT.lines().map(|line| self.launchd_line(line)).collect(),
        };
        lines.join("\n") + "\n"
    }

    fn systemd_line(&self, line: &str) -> String {
        if line.starts_with("ExecStart=") {
            return format!("ExecStart={} serve", systemd_word(&self.program.to_string_lossy()));
        }
        let Some(path) = line.strip_prefix(SYSTEMD_PATH) else { return line.to_owned() };
        let variable = |name: &str, value: &str| format!("Environment={}", systemd_word(&format!("{name}={value}")));
        let state_folder = self.state_folder.iter().map(|dir| variable("PLEXUS_HOME", &dir.to_string_lossy()));
        let path = variable("PATH", &self.path(path, "%h"));
        std::iter::once(path).chain(state_folder).collect::<Vec<_>>().join("\n")
    }

    fn launchd_line(&self, line: &str) -> String {
        let indent = &line[..line.len() - line.trim_start().len()];
        let string = |value: &str| format!("{indent}<string>{}</string>", xml_text(value));
        if line.trim() == LAUNCHD_PROGRAM {
            return string(&self.program.to_string_lossy());
        }
        let value = line.trim().strip_prefix("<string>").and_then(|rest| rest.strip_suffix("</string>"));
        let Some(path) = value.filter(|value| value.contains(':')) else {
            return line.replace("@HOME@", &xml_text(&self.user_home.to_string_lossy()));
        };
        let path = string(&self.path(path, "@HOME@"));
        let state_folder = self.state_folder.iter();
        let state_folder = state_folder
            .map(|dir| format!("\n{indent}<key>PLEXUS_HOME</key>\n{}", string(&dir.to_string_lossy())))
            .collect::<String>();
        path + &state_folder
    }

    /// The value of `PATH`: the folders of the agents, and those of the file in `deploy/`, in which `home` stands for the home folder.
    fn path(&self, default: &str, home: &str) -> String {
        let mut all: Vec<String> = self.folders.iter().map(|dir| dir.to_string_lossy().into_owned()).collect();
        for dir in default.split(':').map(|dir| dir.replace(home, &self.user_home.to_string_lossy())) {
            if !all.contains(&dir) {
                all.push(dir);
            }
        }
        all.join(":")
    }
}

/// Quotes a word of a systemd setting, if needed. `%` begins a specifier.
fn systemd_word(text: &str) -> String {
    let text = text.replace('%', "%%");
    if !text.contains(|c: char| c.is_whitespace() || "'\"\\;".contains(c)) {
        return text;
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn xml_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The lines in which two files differ, at most `limit` of each: `-` for those of `old`, `+` for those of `new`.
pub(super) fn changed_lines(old: &str, new: &str, limit: usize) -> Vec<String> {
    let only_in = |a: &str, b: &str, mark: &str| {
        let lines = a.lines().filter(|line| !b.lines().any(|other| other == *line)).take(limit);
        lines.map(|line| format!("{mark} {line}")).collect::<Vec<_>>()
    };
    [only_in(old, new, "-"), only_in(new, old, "+")].concat()
}

/// The folder under which `dir` stays valid: fnm puts a symlink on PATH that ends with its shell.
pub(super) fn stable_folder(dir: &Path) -> PathBuf {
    let is_transient = dir.components().any(|part| part.as_os_str() == "fnm_multishells");
    let target = if is_transient { dir.canonicalize().ok() } else { None };
    target.unwrap_or_else(|| dir.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(program: &str, folders: &[&str], state_folder: Option<&str>) -> UnitValues {
        UnitValues {
            program: program.into(),
            folders: folders.iter().map(PathBuf::from).collect(),
            state_folder: state_folder.map(PathBuf::from),
            user_home: "/home/me".into(),
        }
    }

    fn changes(values: &UnitValues, manager: Manager, template: &str) -> Vec<String> {
        changed_lines(template, &values.text(manager), 20).into_iter().filter(|line| line.starts_with('+')).collect()
    }

    #[test]
    fn unit_is_the_deployed_one_with_the_paths_of_the_installation() {
        let usual = values("/usr/bin/plexus", &["/opt/node/bin", "/usr/bin"], None);
        let path = "/opt/node/bin:/usr/bin:/home/me/.local/bin:/home/me/.cargo/bin:/usr/local/bin:/bin";
        let expected = ["+ ExecStart=/usr/bin/plexus serve".to_owned(), format!("+ Environment=PATH={path}")];
        assert_eq!(changes(&usual, Manager::Systemd, SYSTEMD_UNIT), expected);
        assert_eq!(usual.text(Manager::Systemd).lines().count(), SYSTEMD_UNIT.lines().count());

        let odd = values("/o p/100%/\"x\"/plexus", &[], Some("/s p"));
        let path = "/home/me/.local/bin:/home/me/.cargo/bin:/usr/local/bin:/usr/bin:/bin";
        let expected = [
            r#"+ ExecStart="/o p/100%%/\"x\"/plexus" serve"#.to_owned(),
            format!("+ Environment=PATH={path}"),
            r#"+ Environment="PLEXUS_HOME=/s p""#.to_owned(),
        ];
        assert_eq!(changes(&odd, Manager::Systemd, SYSTEMD_UNIT), expected);
    }

    #[test]
    fn launchd_agent_has_every_path_filled_in() {
        let values = values("/opt/a&b/plexus", &["/opt/homebrew/bin"], Some("/s"));
        let text = values.text(Manager::Launchd);
        assert!(!text.contains("@HOME@"), "{text}");
        let path = "/opt/homebrew/bin:/home/me/.local/bin:/home/me/.cargo/bin:/usr/local/bin:/usr/bin:/bin";
        for line in [
            "    <string>/opt/a&amp;b/plexus</string>\n    <string>serve</string>\n".to_owned(),
            "<string>/home/me/Library/Logs/plexus.log</string>".to_owned(),
            format!("<string>{path}</string>\n    <key>PLEXUS_HOME</key>\n    <string>/s</string>\n  </dict>"),
        ] {
            assert!(text.contains(&line), "{line} is not in {text}");
        }
    }
}
