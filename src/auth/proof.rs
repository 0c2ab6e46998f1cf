//! The proof by which a gateway identifies itself to its owner's programs before they send it a token.
//!
//! `gateway.json` names the gateway's port and process, and either may belong to another program meanwhile. So each start of a gateway
//! makes a secret, writes it into that file, which only its owner can read, and responds to challenges with it ([`Proof::answer`]).
//! Another program on the port does not know the secret.

use std::fmt;
use std::sync::Arc;

use ring::hmac;

use super::AuthError;
use super::token::{random_text, same};

/// Length of a challenge, in letters and digits. Others get no response.
const CHALLENGE: std::ops::RangeInclusive<usize> = 32..=128;

/// Prefix of each challenge, so that the proof has no other use.
const PURPOSE: &str = "plexus gateway ";

/// The secret of a gateway, new with each start. Cheap to clone.
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
    /// Makes a new secret.
    ///
    /// # Errors
    /// [`AuthError::Random`].
    pub fn new() -> Result<Self, AuthError> {
        Ok(Self::from_secret(&random_text::<32>()?))
    }

    /// Makes the proof with the secret of `gateway.json`.
    pub fn from_secret(secret: &str) -> Self {
        Self { secret: secret.into() }
    }

    /// Returns the secret, for the file that only the owner can read.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Returns the proof for a challenge, in hex, in constant time. `None` unless the challenge has 32 to 128 ASCII letters and digits.
    pub fn answer(&self, challenge: &str) -> Option<String> {
        let valid = CHALLENGE.contains(&challenge.len()) && challenge.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.secret.as_bytes());
        let tag = valid.then(|| hmac::sign(&key, format!("{PURPOSE}{challenge}").as_bytes()));
        tag.map(|tag| data_encoding::HEXLOWER.encode(tag.as_ref()))
    }

    /// Returns whether `answer` was made with the secret. An empty secret proves nothing.
    pub fn holds(&self, challenge: &str, answer: &str) -> bool {
        !self.secret.is_empty() && self.answer(challenge).is_some_and(|right| same(&right, answer))
    }
}

/// Returns a new random challenge.
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
        assert!(Proof::from_secret(mine.secret()).holds(&one, &answer));
        assert!(!mine.holds(&two, &answer) && !other.holds(&one, &answer) && !mine.holds(&one, ""));
        let none = Proof::from_secret("");
        assert!(!none.holds(&one, &none.answer(&one).unwrap()), "no secret, no proof");
        for bad in ["", "short", &"x".repeat(129), &format!("{} {}", "x".repeat(40), "y"), &"ü".repeat(20)] {
            assert_eq!(mine.answer(bad), None, "{bad}");
        }
        assert!(!format!("{mine:?}").contains(mine.secret()));
    }
}
