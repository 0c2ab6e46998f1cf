//! Finds secrets in text and masks them, for notifications, webhooks and recordings. The programs that take a secret on their
//! command line are listed in `tables`.

use std::sync::LazyLock;

use regex::Regex;

use crate::tables::{READ_PASSWORDS, TAKE_PASSWORDS};

/// Maximum size of a masked text, in bytes; the rest is cut. Notifications show less.
const TEXT_MAX: usize = 8192;
/// The replacement of a secret.
const MASK: &str = "•••";
/// Pattern of a value in a shell line or in JSON.
const VALUE: &str = r#"(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\"(?:[^\\]|\\[^"])*\\"|[^\s"'&;,|)\\]+)"#;
/// Pattern of the gap between a flag and its value: `=`, blanks, or the next line of a list of arguments.
const GAP: &str = r#"(?:"?\s+(?:argv\[\d+\]\s+)?"?|=)"#;

/// The patterns of secrets, with their replacements.
static SECRETS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = named().into_iter().chain(commands()).chain(addresses()).chain(token_formats());
    patterns.filter_map(|(pattern, mask)| Some((Regex::new(&pattern).ok()?, mask))).collect()
});

/// Returns patterns of values with the name of a secret.
fn named() -> Vec<(String, &'static str)> {
    let named =
        r"[\w.-]*(?:key|token|secret|passw(?:or)?d|passwd|pwd|pass|passphrase|credential|cookie|auth|signature)[\w.-]*";
    vec![
        // A whole private key, or its beginning.
        (r"-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-----(?s:.)*?(?:-----END [A-Z ]*-----|\z)".to_owned(), "•••"),
        // `Authorization: Bearer x`, to the end of the header.
        (r#"(?i)\b((?:proxy-)?authorization\s*[:=]\s*)[^"'\n]+"#.to_owned(), "$1•••"),
        (r"(?i)\b(bearer|basic|token)\s+[\w.~+/=-]{8,}".to_owned(), "$1 •••"),
        // NAME=value, "name": "value", --name value, --name=value.
        (format!(r#"(?i)((?:^|[\s"'`;&|,?{{(\[\\-]){named}\\?["']?\s*(?:=|:)\s*){VALUE}"#), "$1•••"),
        (format!(r"(?i)(--?{named}\s+){VALUE}"), "$1•••"),
    ]
}

/// Returns patterns of secrets that programs take on their command line, or read from a pipe.
fn commands() -> Vec<(String, &'static str)> {
    let mut all = Vec::new();
    for (programs, flags, apart) in TAKE_PASSWORDS {
        // The value may follow the flag directly; after a gap only if the program accepts that.
        let gap = if *apart { format!("{GAP}?") } else { String::new() };
        all.push((format!(r#"(\b(?:{programs})\b[^|;&]*?["'\s](?:{flags}){gap}){VALUE}"#), "$1•••"));
    }
    let words = format!(r"(?:{VALUE}|[^\n|;&])+?");
    all.push((format!(r"(\b(?:echo|printf)\s+)({words})(\s*\|\s*(?:{READ_PASSWORDS}))"), "$1•••$3"));
    all.push((format!(r"(\b(?:{READ_PASSWORDS})[^|;&\n]*<<<\s*){VALUE}"), "$1•••"));
    all
}

/// Returns patterns of secrets in addresses.
fn addresses() -> Vec<(String, &'static str)> {
    vec![
        // `user:password@host`, a long token as the user, and curl's `-u`.
        (r"(?i)([a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+@".to_owned(), "$1•••@"),
        (r#"(?i)([a-z][a-z0-9+.-]*://)[^\s/:@"'•]{16,}@"#.to_owned(), "$1•••@"),
        (
            r#"(["'\s](?:-u|-U|--user|--proxy-user)["\s=]*(?:argv\[\d+\]\s+)?["']?[^\s:%"'=-][^\s:%"']*[:%])[^\s"']+"#
                .to_owned(),
            "$1•••",
        ),
        // Query parameters that are usually secret.
        (r#"(?i)([?&#](?:sig|sas|code|pin|jwt|sid|session|sessionid|otp)=)[^\s&"'#]+"#.to_owned(), "$1•••"),
        // Webhook addresses whose path is the secret.
        (r#"(?i)(hooks\.slack\.com/(?:services|workflows|triggers)/)[^\s"']+"#.to_owned(), "$1•••"),
        (r#"(?i)(discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/)[^\s"'/?]+"#.to_owned(), "$1•••"),
        (r#"(?i)(api\.telegram\.org/bot\d+:)[^\s"'/]+"#.to_owned(), "$1•••"),
    ]
}

/// Returns patterns of tokens with a known format.
fn token_formats() -> Vec<(String, &'static str)> {
    vec![
        (
            r"\b(sk-|sk_live_|sk_test_|rk_live_|pk_live_|ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|xox[abposr]-|npm_|hf_|pypi-|plx_|dop_v1_|AKIA|ASIA|AIza|ya29\.|eyJ)[\w.~+/=-]{6,}"
                .to_owned(),
            "$1•••",
        ),
        // Long hexadecimal numbers.
        (r"\b(?:0x)?[0-9a-fA-F]{32,}\b".to_owned(), "•••"),
    ]
}

/// Long runs of characters without a space.
static RUNS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[A-Za-z0-9+_=-]{24,}").ok());

/// Returns the text with all secrets masked. It masks too much rather than too little.
pub fn masked(text: &str) -> String {
    masked_by(&text[..text.floor_char_boundary(TEXT_MAX)], &mut |_| MASK.to_owned())
}

/// Returns the whole text, with each secret replaced by the result of `mask`.
pub fn masked_by(text: &str, mask: &mut dyn FnMut(&str) -> String) -> String {
    let mut text = text.to_owned();
    for (pattern, template) in SECRETS.iter() {
        let Some((head, tail)) = template.split_once(MASK) else { continue };
        let replaced = pattern.replace_all(&text, |found: &regex::Captures<'_>| {
            let (mut before, mut after) = (String::new(), String::new());
            found.expand(head, &mut before);
            found.expand(tail, &mut after);
            let secret = found[0].strip_prefix(before.as_str()).unwrap_or(&found[0]);
            if names_variable(&before, secret) {
                return found[0].to_owned();
            }
            let secret = mask(secret.strip_suffix(after.as_str()).unwrap_or(secret));
            before + &secret + &after
        });
        // Usually there are no secrets, and nothing is copied.
        if let std::borrow::Cow::Owned(replaced) = replaced {
            text = replaced;
        }
    }
    match &*RUNS {
        Some(runs) => runs
            .replace_all(
                &text,
                |found: &regex::Captures<'_>| {
                    if is_random(&found[0]) { mask(&found[0]) } else { found[0].to_owned() }
                },
            )
            .into_owned(),
        None => mask(&text),
    }
}

/// Returns whether a value is the name of a variable, as `--pass-env NAME` takes it: the option names the place of the
/// secret, not the secret.
fn names_variable(before: &str, value: &str) -> bool {
    let option = before.trim_end_matches([' ', '=', '\t', '\n']);
    // A name in quotes or in running text, or the beginning of several names.
    let name = value.trim_start_matches(['\'', '"']).trim_end_matches(['\'', '"', '`', '*']);
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    option.ends_with("-env") && name.starts_with(|first: char| !first.is_ascii_digit()) && name.bytes().all(is_name)
}

/// Returns whether a run of characters is more likely a key than a name: it has letters of both cases and digits.
fn is_random(run: &str) -> bool {
    let class = |c: char| match c {
        'a'..='z' => 0,
        'A'..='Z' => 1,
        '0'..='9' => 2,
        _ => 3,
    };
    let classes: Vec<u8> = run.chars().map(class).collect();
    let has = |class| classes.contains(&class);
    let class_changes = classes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    has(0) && has(1) && has(2) && class_changes * 4 >= run.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        let patterns = named().len() + commands().len() + addresses().len() + token_formats().len();
        assert_eq!(SECRETS.len(), patterns, "every pattern is one");
        let key = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4MTIzNDU2";
        for (text, secret) in [
            ("OPENAI_API_KEY=sk-abc123def456 npm start", "abc123def456"),
            ("export AWS_SECRET_ACCESS_KEY='wJalrXUtnFEMI/K7MDENG'", "wJalr"),
            ("env DB_PASSWORD=\"hunter 2\" ./run", "hunter"),
            ("PGPASSWORD=hunter2 psql", "hunter2"),
            ("curl -H \"Authorization: Bearer abc.def-ghi\" https://x", "abc.def"),
            ("curl -H 'authorization: Basic dXNlcjpwYXNz'", "dXNlcjpwYXNz"),
            ("curl -H 'X-Api-Key: 12345' https://x", "12345"),
            ("argv[2] \"X-Auth-Token: hunter2\"", "hunter2"),
            ("argv[3] \"{\\\"password\\\": \\\"hunter2\\\"}\"", "hunter2"),
            ("{\"api_key\": \"hunter2\", \"model\": \"x\"}", "hunter2"),
            ("password: hunter2", "hunter2"),
            ("login --password hunter2 --user me", "hunter2"),
            ("login --token=hunter2", "hunter2"),
            ("login --token-env hunter2", "hunter2"),
            ("git clone https://me:hunter2@example.org/x.git", "hunter2"),
            ("curl -u me:hunter2 https://x", "hunter2"),
            ("https://x/?access_token=hunter2&b=1", "hunter2"),
            ("echo ghp_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F"),
            ("echo AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
            ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "hbGciOiJ"),
            ("echo plx_abcdefghijklmnop", "abcdefghij"),
            ("key 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "9f86d081"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----", "MIIEow"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNza", "b3BlbnNza"),
            (&format!("echo {key} | base64 -d"), key),
            ("mysql -uroot -phunter2 app", "hunter2"),
            ("/usr/bin/mysqldump -h db -u root -p'hunter2 x' app > a.sql", "hunter2"),
            ("mariadb -phunter2", "hunter2"),
            ("argv[0] \"mysql\"\nargv[1] \"-phunter2\"", "hunter2"),
            ("sshpass -p hunter2 ssh me@host", "hunter2"),
            ("sshpass -phunter2 ssh me@host", "hunter2"),
            ("argv[0] \"sshpass\"\nargv[1] \"-p\"\nargv[2] \"hunter2\"", "hunter2"),
            ("echo hunter2 | sudo -S apt install x", "hunter2"),
            ("echo 'hunter2 | x' | sudo -k -S true", "hunter2"),
            ("printf '%s\\n' hunter2 | su -c id", "hunter2"),
            ("echo root:hunter2 | chpasswd", "hunter2"),
            ("echo hunter2 | docker login -u me --password-stdin", "hunter2"),
            ("sudo -S id <<< hunter2", "hunter2"),
            ("curl -ume:hunter2 https://x", "hunter2"),
            ("curl --proxy-user me:hunter2 https://x", "hunter2"),
            ("argv[0] \"curl\"\nargv[1] \"-u\"\nargv[2] \"me:hunter2\"", "hunter2"),
            ("smbclient -U me%hunter2 //host/x", "hunter2"),
            ("redis-cli -h x -a hunter2 ping", "hunter2"),
            ("docker login -u me -p hunter2 example.org", "hunter2"),
            ("ldapsearch -D cn=me -w hunter2", "hunter2"),
            ("openssl rsa -in a.pem -passin pass:hunter2", "hunter2"),
            ("DB_PASS=hunter2 ./run", "hunter2"),
            ("git clone https://abcdef0123456789hunter@example.org/x.git", "0123456789hunter"),
            ("curl 'https://x.blob.core.windows.net/a?sv=1&sig=hunter2%3D'", "hunter2"),
            ("curl https://hooks.slack.com/services/T0/B0/hunter2", "hunter2"),
            ("curl https://api.telegram.org/bot12345:hunter2/send", "hunter2"),
        ] {
            let shown = masked(text);
            assert!(!shown.contains(secret) && shown.contains(MASK), "{text} -> {shown}");
        }
    }

    #[test]
    fn secrets_mask_leaves_plain_commands_readable() {
        for text in [
            "touch demo.txt && ls -la /usr/local/share/applications/default",
            "cargo test --locked --test story_notifications_and_what_they_say",
            "RUST_LOG=debug NODE_ENV=production npm run build",
            "git commit -m 'count tokens' src/tokenizer.rs",
            "rm -rf node_modules/.cache/babel-loader-and-other-things-2024",
            "edit src/AuthenticationControllerTest.java\n-a\n+b",
            "kubectl get pods --namespace production-cluster-eu-west-1",
            "https://example.org/a/b?page=2",
            "echo done | sudo tee /etc/motd",
            "mysql -u root -p app",
            "git clone ssh://git@example.org/x.git",
            "ssh -p 2222 me@host uptime",
            "mkdir -p src/passes && tar -cf a.tar src",
            "plexus run gemini --pass-env GEMINI_API_KEY",
            "pass it on (`plexus run .. --pass-env NAME`, or `--pass-env 'NAME*'`, or `--token-env=MY_TOKEN`)",
        ] {
            assert_eq!(masked(text), text);
        }
        assert_eq!(masked("A_TOKEN=x ls -l"), "A_TOKEN=••• ls -l", "only the value");
    }
}
