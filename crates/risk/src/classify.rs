//! The risk of shell lines and of the simple commands in them, which may run other lines. Lines are not expanded, and
//! one that is not fully understood is never low.

use plexus_protocol::Risk;

use crate::paths::{acts_later, device, is_inside_folder, named, secret, written};
use crate::shell::{ShellLine, ShellText, parse};
use crate::tables::*;
use crate::verdict::RiskVerdict;

/// Maximum depth of shells within shells that are parsed; deeper ones are dangerous.
pub(super) const DEPTH_MAX: usize = 6;

/// Returns the risk of a shell line.
pub fn classify(text: &ShellText<'_>) -> RiskVerdict {
    classify_within(text, DEPTH_MAX)
}

/// Returns the risk like [`classify`], for a line inside others: at most `depth` more levels are parsed.
pub(super) fn classify_within(text: &ShellText<'_>, depth: usize) -> RiskVerdict {
    if depth == 0 {
        return RiskVerdict::danger("is wrapped too deep to be read");
    }
    judge_line(&parse(text.line), text, depth)
}

fn judge_line(line: &ShellLine, text: &ShellText<'_>, depth: usize) -> RiskVerdict {
    let mut all = RiskVerdict::low();
    if line.broken {
        all.and(RiskVerdict::elevated("is not a whole command: it cannot be read to its end"));
    }
    if line.disguised {
        all.and(RiskVerdict::danger("is written in a disguise"));
    }
    if line.commands.is_empty() && line.written.is_empty() {
        all.and(RiskVerdict::elevated("has no command in it"));
    }
    for effect in &line.effects {
        all.and(RiskVerdict::elevated(*effect));
    }
    for target in &line.written {
        all.and(written(target, text));
    }
    let (mut fetches, mut decodes, mut runs, mut secret, mut sends) = (false, false, false, false, false);
    for command in &line.commands {
        let command = SimpleCommand { words: command, text, depth };
        all.and(command.verdict());
        fetches |= command.runs_any(NETWORK);
        decodes |= command.runs_any(FETCHERS);
        runs |= command.runs_code();
        secret |= command.words.iter().skip(1).any(|word| crate::paths::secret(word));
        sends |= command.runs_any(NETWORK) || command.runs_any(&["nc", "ncat", "ssh", "mail", "aws", "rclone"]);
    }
    if fetches && runs {
        all.and(RiskVerdict::danger("pipes the network into a shell, or runs what it fetched"));
    } else if decodes && runs {
        all.and(RiskVerdict::danger("runs what it takes out of a disguise"));
    }
    if secret && sends {
        all.and(RiskVerdict::danger("sends what may be secret"));
    }
    if all.risk == Risk::Low && line.commands.iter().any(|words| words.first().is_none_or(|word| base(word).is_empty()))
    {
        all.and(RiskVerdict::elevated("has a command without a name"));
    }
    all
}

/// A simple command.
#[derive(Clone, Copy)]
pub(super) struct SimpleCommand<'a> {
    pub(super) words: &'a [String],
    pub(super) text: &'a ShellText<'a>,
    /// The number of further levels of shells within shells that may be parsed.
    pub(super) depth: usize,
}

/// Returns the name of a program without its path.
pub(super) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Returns the name of a program in lower case, without a version as in `python3.12`.
fn program_name(word: &str) -> String {
    let name = base(word).to_ascii_lowercase();
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    // `.` and names of digits alone stay as they are.
    if bare.is_empty() || READERS.iter().any(|reader| reader.name == name) || FETCHERS.contains(&name.as_str()) {
        name
    } else {
        bare.to_owned()
    }
}

/// Returns whether a word is a program of the tables, in the form of a command, or a path of a program.
pub(super) fn is_known(program: &str) -> bool {
    let name = program_name(program);
    let name = name.as_str();
    let is_listed = |table: &[(&str, &[&str])]| table.iter().any(|(known, _)| *known == name);
    let path = ["./", "../", "/", "~/"].iter().any(|start| program.starts_with(start)) && program.len() > 3;
    if base(program).contains(char::is_uppercase) || KEYWORDS.contains(&name) {
        return false;
    }
    path || is_dangerous(program)
        || is_wrapper(program)
        || READERS.iter().any(|reader| reader.name == name)
        || DANGEROUS_WITH.iter().any(|(known, ..)| *known == name)
        || [SHELLS, RUNNERS, FETCHERS, FOLDER_CHOSEN].iter().any(|table| table.contains(&name))
        || [FOLDER_RUNNERS, INSTALLS, SENDS, WRITES, VERSIONED].into_iter().any(is_listed)
        || matches!(name, "git" | "find" | "sed" | "cd" | "chmod" | "psql" | "mysql" | "sqlite" | "redis-cli")
}

/// Returns the variable that a word assigns.
fn assigned(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_name.then_some(name)
}

impl<'a> SimpleCommand<'a> {
    /// Returns the words after the variable assignments.
    fn bare(&self) -> &'a [String] {
        let assignments = self.words.iter().take_while(|word| assigned(word).is_some()).count();
        &self.words[assignments..]
    }

    fn with_arguments(&self, words: &'a [String]) -> Self {
        Self { words, ..*self }
    }

    /// Returns whether the command runs one of these programs, directly or through a wrapper or shell.
    pub(super) fn runs_any(&self, programs: &[&str]) -> bool {
        let words = self.bare();
        let Some(first) = words.first() else { return false };
        programs.contains(&program_name(first).as_str())
            || (is_wrapper(first) && words.iter().skip(1).any(|word| programs.contains(&program_name(word).as_str())))
            || self.shell_line().is_some_and(|line| {
                line.split(|c: char| c.is_whitespace() || "|;&()`".contains(c))
                    .any(|word| programs.contains(&base(word)))
            })
    }

    /// Returns whether the command runs its input or a file of the folder.
    pub(super) fn runs_code(&self) -> bool {
        let Some(first) = self.bare().first() else { return false };
        self.runs_any(SHELLS) || self.runs_any(RUNNERS) || program_name(first) == "chmod" || first.starts_with("./")
    }

    /// Returns the line that a shell runs with `-c`.
    fn shell_line(&self) -> Option<&'a str> {
        let (program, rest) = self.bare().split_first()?;
        if !SHELLS.contains(&program_name(program).as_str()) {
            return None;
        }
        let option = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
        let at = rest.iter().position(option)?;
        let after = rest[at + 1..].iter().find(|word| !word.starts_with(['-', '+']));
        after.map(String::as_str)
    }

    /// Returns the risk of the command.
    pub(super) fn verdict(&self) -> RiskVerdict {
        let mut all = RiskVerdict::low();
        for name in self.words.iter().map_while(|word| assigned(word)) {
            all.and(match LOADERS.contains(&name) {
                true => RiskVerdict::danger(format!("changes what programs load and run ({name})")),
                false => RiskVerdict::elevated(format!("sets a variable for what it runs ({})", named(name))),
            });
        }
        let words = self.bare();
        let Some((program, rest)) = words.split_first() else { return all };
        // The shell expands these to other words.
        if program.contains(['$', '`', '*', '?', '[', '~']) && program != "[" && program != "[["
            || (program.contains('{') && program != "{")
            || program.starts_with('-')
        {
            if program.starts_with("~/") || program.starts_with("$HOME/") {
                all.and(RiskVerdict::elevated(format!("runs a program outside the folder ({})", named(program))));
            } else {
                all.and(RiskVerdict::danger("what it runs is put together when it runs"));
            }
            return all;
        }
        if let Some(line) = self.shell_line() {
            let inner = ShellText { line, ..*self.text };
            all.and(classify_within(&inner, self.depth.saturating_sub(1)));
            // The words after the line are its arguments.
            let plain = rest.len() == 2 && matches!(rest[0].as_str(), "-c" | "-lc" | "-cl" | "-ic");
            if !plain || program.contains('/') && !program.starts_with("/bin/") && !program.starts_with("/usr/bin/") {
                all.and(RiskVerdict::elevated("runs a shell"));
            }
            return all;
        }
        if self.only_reads(program, rest) {
            return all;
        }
        all.and(self.effects(program, rest));
        if is_wrapper(program) {
            // Any word of a wrapper may be the program that it runs.
            for at in 0..rest.len() {
                let inner = self.with_arguments(&rest[at..]);
                let found = match at {
                    _ if rest[at].contains(char::is_whitespace) => {
                        classify_within(&ShellText { line: &rest[at], ..*self.text }, self.depth.saturating_sub(1))
                    }
                    _ if assigned(&rest[at]).is_some()
                        || is_dangerous(&rest[at])
                        || is_wrapper(&rest[at])
                        || inner.shell_line().is_some() =>
                    {
                        SimpleCommand { depth: self.depth.saturating_sub(1), ..inner }.verdict_within_depth()
                    }
                    _ => inner.effects(&rest[at], &rest[at + 1..]),
                };
                if found.risk > all.risk {
                    all.and(found);
                }
            }
        }
        all
    }

    /// Returns the risk like [`verdict`](Self::verdict); danger if the depth is used up.
    fn verdict_within_depth(&self) -> RiskVerdict {
        if self.depth == 0 { RiskVerdict::danger("is wrapped too deep to be read") } else { self.verdict() }
    }

    /// Returns whether the command only reads and searches, and only inside the folder.
    fn only_reads(&self, program: &str, rest: &[String]) -> bool {
        if let [only] = rest
            && VERSIONED.iter().any(|(known, words)| *known == program && words.contains(&only.as_str()))
        {
            return true;
        }
        let is_inside = rest.iter().all(|word| is_inside_folder(word, self.text) && !secret(word));
        let only_reads = match program {
            "git" => git_reads(rest),
            "find" => rest.iter().all(|word| !word.starts_with('-') || FIND.contains(&word.as_str())),
            "cd" => matches!(rest, [folder] if !folder.starts_with('-') && !folder.is_empty()),
            // `echo` only prints its arguments.
            "echo" => true,
            // `printf` only prints; `-v` sets a variable.
            "printf" => rest.first().is_some_and(|word| !word.starts_with('-')),
            // With a plain word `date` sets the clock.
            "date" => reader_options("date", rest) && rest.iter().all(|word| word.starts_with(['+', '-'])),
            // Only a script of `sed` that prints lines by number is safe.
            "sed" => sed_prints(rest),
            "true" | "false" | ":" => true,
            program => reader_options(program, rest),
        };
        only_reads && is_inside
    }

    /// Returns the risk of a command that does more than read. Unknown programs are elevated.
    fn effects(&self, program: &str, rest: &[String]) -> RiskVerdict {
        let name = program_name(program);
        let name = name.as_str();
        let mut all = self.danger(name, rest);
        if all.risk == Risk::Danger {
            return all;
        }
        let has = |with: &[&str]| with.is_empty() || rest.iter().any(|word| with.contains(&word.as_str()));
        let listed = |table: &[(&str, &[&str])]| table.iter().any(|(known, with)| *known == name && has(with));
        let label = match rest.iter().find(|word| !word.starts_with('-')) {
            Some(verb) if verb.len() < 20 && verb.bytes().all(|b| b.is_ascii_alphanumeric() || b"-:_".contains(&b)) => {
                format!("{} {verb}", named(program))
            }
            _ => named(program),
        };
        let has_path = program.contains('/');
        if listed(SENDS) {
            all.and(RiskVerdict::elevated(format!("sends to a server ({label})")));
        }
        if NETWORK.contains(&name) {
            all.and(RiskVerdict::elevated(match sends(rest) {
                true => format!("sends to a server ({name})"),
                false => format!("fetches from the network ({name})"),
            }));
        }
        if name == "git" && has(&["clone", "fetch", "pull", "ls-remote", "submodule"]) {
            all.and(RiskVerdict::elevated(format!("fetches from the network ({label})")));
        }
        if listed(INSTALLS) {
            all.and(RiskVerdict::elevated(format!("installs packages ({label})")));
        }
        if listed(FOLDER_RUNNERS) {
            all.and(RiskVerdict::elevated(format!("runs code from this folder ({label})")));
        } else if has_path || name.ends_with(".sh") || SHELLS.contains(&name) || RUNNERS.contains(&name) {
            all.and(RiskVerdict::elevated(match is_inside_folder(program, self.text) {
                true => format!("runs code from this folder ({label})"),
                false => format!("runs a program outside the folder ({})", named(program)),
            }));
        }
        if listed(WRITES) {
            let out = rest.iter().find(|word| !is_inside_folder(word, self.text));
            all.and(RiskVerdict::elevated(match out {
                Some(out) => format!("writes outside the folder ({})", named(out)),
                None => format!("writes files in the folder ({label})"),
            }));
        }
        if all.risk > Risk::Low {
            return all;
        }
        if FOLDER_CHOSEN.contains(&name) {
            return RiskVerdict::elevated(format!("runs the version that this folder asks for ({label})"));
        }
        if KEYWORDS.contains(&program) {
            return RiskVerdict::elevated("is a script of several parts");
        }
        if is_wrapper(program) {
            return RiskVerdict::elevated(format!("runs another command ({})", named(program)));
        }
        if READERS.iter().any(|reader| reader.name == name) || matches!(name, "git" | "find" | "sed" | "cd") {
            if let Some(out) = rest.iter().find(|word| secret(word)) {
                return RiskVerdict::elevated(format!("reads what may be secret ({})", named(out)));
            }
            if let Some(out) = rest.iter().find(|word| !is_inside_folder(word, self.text)) {
                return RiskVerdict::elevated(format!("reads outside the folder ({})", named(out)));
            }
            return RiskVerdict::elevated(format!("tells {} an option that may make it write or run", named(program)));
        }
        RiskVerdict::elevated(format!("runs a program that is not known ({})", named(program)))
    }

    /// Returns the dangers of programs that write to paths in their arguments.
    fn writes_files(&self, name: &str, rest: &[String]) -> RiskVerdict {
        let mut all = RiskVerdict::low();
        let has = |with: &[&str]| rest.iter().any(|word| matches_option(word, with));
        for word in rest {
            let path = word.rsplit('=').next().unwrap_or(word);
            // Reading is allowed anywhere; only paths that take effect later, and devices, count.
            if (acts_later(path) || device(path)) && (path.contains('/') || path.starts_with('.')) {
                all.and(written(path, self.text));
            }
            if path == "/dev/null" && name == "mv" {
                all.and(RiskVerdict::danger("deletes files (mv)"));
            }
        }
        let runs = [
            "--to-command",
            "--checkpoint-action",
            "--use-compress-program",
            "-I",
            "--rsh",
            "--rsync-path",
            "--info-script",
            "--new-volume-script",
        ];
        if matches!(name, "tar" | "rsync") && has(&runs) {
            all.and(RiskVerdict::danger(format!("runs another command ({name})")));
        }
        if name == "sed" && rest.iter().any(|word| sed_runs(word)) {
            all.and(RiskVerdict::danger("runs another command (sed)"));
        }
        all
    }

    fn danger(&self, name: &str, rest: &[String]) -> RiskVerdict {
        let mut all = RiskVerdict::low();
        let has = |with: &[&str]| rest.iter().any(|word| matches_option(word, with));
        for (why, programs) in DANGEROUS {
            let makes_a_filesystem = name.starts_with("mkfs") && *why == "writes to disks";
            if !(programs.contains(&name) || makes_a_filesystem) {
                continue;
            }
            let out = rest.iter().find(|word| !word.starts_with('-') && !is_inside_folder(word, self.text));
            all.and(RiskVerdict::danger(match (*why, out) {
                ("deletes files", Some(out)) => format!("deletes outside the folder ({name} {})", named(out)),
                ("deletes files", None) if rest.iter().any(|word| recursive(word)) => {
                    format!("deletes whole folders ({name})")
                }
                (why, _) => format!("{why} ({name})"),
            }));
        }
        for (program, with, why) in DANGEROUS_WITH {
            if *program == name && has(with) {
                all.and(RiskVerdict::danger(format!("{why} ({name})")));
            }
        }
        match name {
            "git" => all.and(git_harms(rest)),
            // Permissions that are recursive, for everybody, or set-user-id are dangerous.
            "chmod" => {
                let wide = |word: &String| {
                    matches!(word.as_str(), "-R" | "--recursive")
                        || word.contains("+s")
                        || word.contains("777")
                        || word.contains("666")
                        || (word.len() == 4 && word.starts_with(['2', '4', '6']))
                };
                if rest.iter().any(wide) {
                    all.and(RiskVerdict::danger("changes permissions (chmod)"));
                }
            }
            "mv" | "cp" | "tee" | "ln" | "install" | "touch" | "patch" | "sed" | "tar" | "unzip" | "curl" | "wget"
            | "rsync" | "ed" | "sponge" => all.and(self.writes_files(name, rest)),
            "psql" | "mysql" | "sqlite" | "sqlite3" | "mongo" | "mongosh" | "redis-cli" | "mariadb" => {
                all.and(changes_database(name, rest))
            }
            "docker" | "podman" => {
                let root = |word: &String| {
                    word.starts_with("/:")
                        || word.contains("source=/,")
                        || word.contains("docker.sock")
                        || word == "-v/:/"
                };
                if rest.iter().any(root) {
                    all.and(RiskVerdict::danger(format!("gives a container the files of the machine ({name})")));
                }
            }
            "eval" => all
                .and(classify_within(&ShellText { line: &rest.join(" "), ..*self.text }, self.depth.saturating_sub(1))),
            _ if RUNNERS.contains(&name) => {
                let low = |word: &String| word.to_ascii_lowercase();
                let harms = rest.iter().map(low).any(|word| {
                    word.contains(char::is_whitespace) | word.contains('(')
                        && HARMFUL_CODE.iter().any(|bad| word.contains(bad))
                });
                if harms {
                    all.and(RiskVerdict::danger(format!(
                        "runs a program that deletes, writes or starts something ({name})"
                    )));
                }
            }
            _ => {}
        }
        all
    }
}

/// Returns whether a word is one of these options, with its value or without.
fn matches_option(word: &str, options: &[&str]) -> bool {
    options.contains(&word.split('=').next().unwrap_or(word)) || options.contains(&word)
}

/// Returns whether statements for a database client delete or change data.
fn changes_database(name: &str, rest: &[String]) -> RiskVerdict {
    let mut all = RiskVerdict::low();
    let words: Vec<String> = rest.iter().map(|word| word.to_ascii_lowercase()).collect();
    let verbs =
        ["drop ", "delete ", "truncate ", "dropdatabase", "flushall", "flushdb", "alter ", "update ", "deletemany"];
    if words.iter().any(|word| verbs.iter().any(|verb| word.contains(verb))) {
        all.and(RiskVerdict::danger(format!("deletes from a database, or changes it ({name})")));
    }
    all
}

fn is_wrapper(program: &str) -> bool {
    WRAPPERS.contains(&program_name(program).as_str()) || WRAPPERS.contains(&base(program))
}

fn is_dangerous(word: &str) -> bool {
    let name = program_name(word);
    DANGEROUS.iter().any(|(_, programs)| programs.contains(&name.as_str()))
}

fn recursive(word: &str) -> bool {
    word == "--recursive" || (word.starts_with('-') && !word.starts_with("--") && word.contains(['r', 'R']))
}

/// Returns whether all options of a reader are among those with which it only reads.
fn reader_options(program: &str, rest: &[String]) -> bool {
    let Some(reader) = READERS.iter().find(|reader| reader.name == program) else { return false };
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            return true;
        }
        if let Some(long) = word.strip_prefix("--") {
            if !reader.long.contains(&long.split('=').next().unwrap_or(long)) {
                return false;
            }
            continue;
        }
        let Some(cluster) = word.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else { continue };
        // `head -5`, `grep -3`.
        if cluster.bytes().all(|byte| byte.is_ascii_digit())
            && matches!(program, "head" | "tail" | "grep" | "diff" | "rg")
        {
            continue;
        }
        for (at, letter) in cluster.char_indices() {
            if reader.valued.contains(letter) {
                // The value is the rest of the word, or the next word.
                if cluster[at + letter.len_utf8()..].is_empty() {
                    // A next word that looks like an option may be one: `date -I` takes its value without a space.
                    let option = |value: &String| {
                        value.starts_with('-') && !value[1..].starts_with(|c: char| c.is_ascii_digit())
                    };
                    if words.next().is_some_and(option) {
                        return false;
                    }
                }
                break;
            }
            if !reader.flags.contains(letter) {
                return false;
            }
        }
    }
    true
}

fn git_reads(rest: &[String]) -> bool {
    let rest = match rest {
        [first, rest @ ..] if first == "--no-pager" || first == "-P" => rest,
        rest => rest,
    };
    let Some((verb, rest)) = rest.split_first() else { return false };
    if let Some((_, lists)) = GIT_LISTS.iter().find(|(known, _)| known == verb) {
        // Without arguments these change something.
        let alone = rest.is_empty() && matches!(verb.as_str(), "stash" | "worktree");
        return !alone && rest.iter().all(|word| lists.contains(&word.as_str()));
    }
    let known = |word: &String| {
        let name = word.split('=').next().unwrap_or(word);
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value_options = ["-n", "-U", "-L", "-S", "-G", "-C", "-M", "-"];
        !word.starts_with('-')
            || GIT_OPTIONS.contains(&name)
            || value_options.iter().any(|option| word.strip_prefix(option).is_some_and(number))
    };
    GIT_READS.contains(&verb.as_str()) && rest.iter().all(known)
}

fn git_harms(rest: &[String]) -> RiskVerdict {
    let mut all = RiskVerdict::low();
    let verb = rest.iter().position(|word| !word.starts_with('-')).unwrap_or(rest.len());
    let has = |some: &[&str]| {
        rest.iter().any(|word| {
            some.contains(&word.as_str()) || word.split_once('=').is_some_and(|(name, _)| some.contains(&name))
        })
    };
    for (name, with, why) in GIT_DESTROYS {
        // The value of an option before the verb may look like the verb.
        if has(&[name])
            && (with.is_empty() || has(with))
            && !(with.is_empty() && rest.get(verb).is_some_and(|first| first != name && !rest[0].starts_with('-')))
        {
            all.and(RiskVerdict::danger(format!("{why} (git {name})")));
        }
    }
    let push = has(&["push"]);
    if push
        && rest.iter().any(|word| {
            word.starts_with('+') || (word.starts_with('-') && !word.starts_with("--") && word.contains('f'))
        })
    {
        all.and(RiskVerdict::danger("rewrites history on a server (git push)"));
    }
    if push && rest.iter().skip(1).any(|word| word.starts_with(':')) {
        all.and(RiskVerdict::danger("deletes from a server (git push)"));
    }
    // `-c alias.x=!..` and many other options run any command.
    if rest.iter().any(|word| {
        word == "-c"
            || word.starts_with("-c") && word.contains('=')
            || word.starts_with("--config")
            || word.starts_with("--exec")
            || word.starts_with("--upload-pack")
            || word.starts_with("--receive-pack")
            || word.starts_with("ext::")
    }) {
        all.and(RiskVerdict::danger("makes git run another command (git -c)"));
    }
    all
}

/// Returns whether the options of a fetcher make it send.
fn sends(rest: &[String]) -> bool {
    let long =
        ["--data", "--form", "--upload-file", "--post", "--json", "--request=P", "--request=D", "--method", "--body"];
    rest.iter().enumerate().any(|(at, word)| {
        long.iter().any(|option| word.starts_with(option))
            || (word.starts_with('-') && !word.starts_with("--") && word.contains(['d', 'F', 'T']))
            || matches!(word.as_str(), "-X" | "--request")
                && rest
                    .get(at + 1)
                    .is_some_and(|verb| !verb.eq_ignore_ascii_case("get") && !verb.eq_ignore_ascii_case("head"))
    })
}

/// Returns whether `sed` only prints lines: `sed -n 3,9p FILE`.
fn sed_prints(rest: &[String]) -> bool {
    let [option, script, files @ ..] = rest else { return false };
    let prints = script
        .strip_suffix('p')
        .is_some_and(|range| !range.is_empty() && range.bytes().all(|byte| byte.is_ascii_digit() || byte == b','));
    option == "-n" && prints && files.iter().all(|file| !file.starts_with('-'))
}

/// Returns whether a sed script has the command or flag `e`, which runs a line as a command.
fn sed_runs(word: &str) -> bool {
    let flags = word.rsplit(['/', '|', '#', ',', '!']).next().unwrap_or_default();
    let substitutes = word.starts_with('s') || word.contains(";s");
    (substitutes && flags.len() <= 4 && flags.contains('e'))
        || word == "e"
        || word.starts_with("1e ")
        || word.starts_with("e ")
}
