//! How a gateway proves to its owner's programs that it is theirs, before they tell it a token.
//!
//! A file says where the gateway is, and may be older than what listens there now: a process number and a port are soon
//! somebody else's. So each start of a gateway makes a secret, writes it into that file, which only its owner can read,
//! and answers challenges with it ([`Proof::answer`]). Whoever listens in its place does not know it.

use std::fmt;
use std::sync::Arc;

use ring::hmac;

use super::AuthError;
use super::token::{random_text, same};

/// Letters of a challenge. Others are not answered.
const CHALLENGE: std::ops::RangeInclusive<usize> = 32..=128;

/// What is said before a challenge, so that the secret proves this and nothing else.
const PURPOSE: &str = "plexus gateway ";

/// A gateway's secret, new with each start. Cheap to clone.
#[derive(Clone)]
pub struct Proof {
    secret: Arc<str>,
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proof")
    }
}

impl Proof {
    /// A new secret.
    ///
    /// # Errors
    /// [`AuthError::Random`].
    pub fn new() -> Result<Self, AuthError> {
        Ok(Self::of(&random_text::<32>()?))
    }

    /// The secret that the file has.
    pub fn of(secret: &str) -> Self {
        Self { secret: secret.into() }
    }

    /// For the file that only the owner can read, and for nobody else.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The proof for a challenge, in hex: costs the same for each. `None` for what is no challenge: 32 to 128 ASCII letters
    /// and digits.
    pub fn answer(&self, challenge: &str) -> Option<String> {
        let fits = CHALLENGE.contains(&challenge.len()) && challenge.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.secret.as_bytes());
        let tag = fits.then(|| hmac::sign(&key, format!("{PURPOSE}{challenge}").as_bytes()));
        tag.map(|tag| data_encoding::HEXLOWER.encode(tag.as_ref()))
    }

    /// Whether `answer` proves that whoever gave it knows the secret. An empty secret proves nothing.
    pub fn holds(&self, challenge: &str, answer: &str) -> bool {
        !self.secret.is_empty() && self.answer(challenge).is_some_and(|right| same(&right, answer))
    }
}

/// A challenge that was never given before.
///
/// # Errors
/// [`AuthError::Random`].
pub fn challenge() -> Result<String, AuthError> {
    random_text::<32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_answers_its_own_challenge_and_needs_the_secret() {
        let (mine, other) = (Proof::new().unwrap(), Proof::new().unwrap());
        let (one, two) = (challenge().unwrap(), challenge().unwrap());
        let answer = mine.answer(&one).unwrap();
        assert!(Proof::of(mine.secret()).holds(&one, &answer));
        assert!(!mine.holds(&two, &answer) && !other.holds(&one, &answer) && !mine.holds(&one, ""));
        let none = Proof::of("");
        assert!(!none.holds(&one, &none.answer(&one).unwrap()), "no secret, no proof");
        for bad in ["", "short", &"x".repeat(129), &format!("{} {}", "x".repeat(40), "y"), &"ü".repeat(20)] {
            assert_eq!(mine.answer(bad), None, "{bad}");
        }
        assert!(!format!("{mine:?}").contains(mine.secret()));
    }
}
