//! Web Push encryption for one subscription (RFC 8291, `aes128gcm`) and the proof of the sender (VAPID, RFC 8292), with the primitives
//! of ring.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use data_encoding::BASE64URL_NOPAD;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

use plexus_protocol::Timestamp;

/// The file of the key pair in the state folder. Its holder can send to every known subscription; if it is lost, every device subscribes
/// again.
pub(super) const KEY_FILE: &str = "push.key";
/// Lifetime of a proof, in seconds: services accept a day at most, and their clocks may differ from the gateway's.
const PROOF_LIFE: i64 = 12 * 3600;
/// Maximum size of the key file, in bytes; a longer one is not the gateway's.
const KEY_FILE_MAX: usize = 1024;
/// Length of an uncompressed P-256 point, in bytes.
pub(super) const POINT: usize = 65;
/// Length of the secret of a subscription, in bytes.
pub(super) const AUTH: usize = 16;
/// The announced record size, in bytes: a message is one record.
const RECORD: u32 = 4096;
/// Block size to which messages are padded, in bytes, so that their length reveals little.
const FILL: usize = 512;

/// The key pair of the gateway.
pub(super) struct Keys {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    /// The public half, in the form for browsers (`applicationServerKey`).
    pub(super) public: String,
    /// `true` if the pair is new, so that existing subscriptions were made for another.
    pub(super) made: bool,
}

impl Keys {
    /// Reads the pair in `home`, or makes it, readable by its owner only.
    ///
    /// # Errors
    /// A text for users, with the fix.
    pub(super) fn open(home: &Path) -> Result<Self, String> {
        let path = home.join(KEY_FILE);
        let random = SystemRandom::new();
        let mut made_now = false;
        let bytes = match std::fs::read(&path) {
            Ok(bytes) if bytes.len() <= KEY_FILE_MAX => bytes,
            Ok(_) => {
                return Err(format!("{} is not a key of this gateway: move it away and start again", path.display()));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
                let made = made.map_err(|_| "the system provides no random numbers".to_owned())?;
                write(&path, made.as_ref())
                    .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
                made_now = true;
                made.as_ref().to_vec()
            }
            Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
        };
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &bytes, &random).map_err(|_| {
            format!(
                "{} is damaged: remove it and start again; every device then has to subscribe again",
                path.display()
            )
        })?;
        let public = BASE64URL_NOPAD.encode(pair.public_key().as_ref());
        Ok(Self { pair, random, public, made: made_now })
    }

    /// Returns the `Authorization` for a push service at the origin `audience`.
    pub(super) fn proof(&self, audience: &str, contact: Option<&str>, now: Timestamp) -> Option<String> {
        let mut claims = json!({ "aud": audience, "exp": now.as_millis() / 1000 + PROOF_LIFE });
        if let Some(contact) = contact {
            claims["sub"] = contact.into();
        }
        let part = |value: &serde_json::Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let signing_input = format!("{}.{}", part(&json!({ "typ": "JWT", "alg": "ES256" })), part(&claims));
        let signature = self.pair.sign(&self.random, signing_input.as_bytes()).ok()?;
        Some(format!("vapid t={signing_input}.{}, k={}", BASE64URL_NOPAD.encode(signature.as_ref()), self.public))
    }

    /// Encrypts `plain` for the subscription with these keys. `None` if the keys are invalid, or `plain` is too long.
    pub(super) fn seal(&self, peer_public: &[u8], auth: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        if peer_public.len() != POINT || auth.len() != AUTH {
            return None;
        }
        let mut salt = [0; 16];
        self.random.fill(&mut salt).ok()?;
        let ephemeral = EphemeralPrivateKey::generate(&ECDH_P256, &self.random).ok()?;
        let public = ephemeral.compute_public_key().ok()?;
        let peer_key = UnparsedPublicKey::new(&ECDH_P256, peer_public);
        let (key, nonce) =
            agree_ephemeral(ephemeral, &peer_key, |secret| derive(secret, auth, peer_public, public.as_ref(), &salt))
                .ok()??;
        let mut sealed = plain.to_vec();
        // The delimiter of the last record, then padding.
        sealed.push(2);
        sealed.resize(sealed.len().next_multiple_of(FILL), 0);
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?);
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed).ok()?;
        let mut message = Vec::with_capacity(21 + POINT + sealed.len());
        message.extend_from_slice(&salt);
        message.extend_from_slice(&RECORD.to_be_bytes());
        message.push(u8::try_from(POINT).ok()?);
        message.extend_from_slice(public.as_ref());
        message.extend_from_slice(&sealed);
        // The maximum that services accept: RFC 8030, 7.2.
        (message.len() <= RECORD as usize).then_some(message)
    }
}

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

fn hkdf<const N: usize>(salt: &[u8], secret: &[u8], info: &[&[u8]]) -> Option<[u8; N]> {
    let mut out = [0; N];
    Salt::new(HKDF_SHA256, salt).extract(secret).expand(info, Bytes(N)).ok()?.fill(&mut out).ok()?;
    Some(out)
}

/// Derives the key and the nonce of the record (RFC 8291, 3.4).
fn derive(
    secret: &[u8],
    auth: &[u8],
    peer_public: &[u8],
    own_public: &[u8],
    salt: &[u8],
) -> Option<([u8; 16], [u8; 12])> {
    let secret: [u8; 32] = hkdf(auth, secret, &[b"WebPush: info\0", peer_public, own_public])?;
    let key = hkdf(salt, &secret, &[b"Content-Encoding: aes128gcm\0"])?;
    Some((key, hkdf(salt, &secret, &[b"Content-Encoding: nonce\0"])?))
}

/// Writes a file that only its owner can read, completely or not at all.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let temporary = path.with_extension("new");
    let _ = std::fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        BASE64URL_NOPAD.decode(text.as_bytes()).unwrap()
    }

    /// RFC 8291, appendix A.
    const THEIRS: &str = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
    const SECRET: &str = "BTBZMqHH6r4Tts7J_aSIgg";

    #[test]
    fn push_keys_are_derived_as_in_the_rfc_example() {
        let own_public = "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8";
        let shared = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let salt = bytes("DGv6ra1nlYgDCS1FRnbzlw");
        let (key, nonce) = derive(&shared, &bytes(SECRET), &bytes(THEIRS), &bytes(own_public), &salt).unwrap();
        assert_eq!(BASE64URL_NOPAD.encode(&key), "oIhVW04MRdy2XN9CiKLxTg");
        assert_eq!(BASE64URL_NOPAD.encode(&nonce), "4h_95klXJ5E_qnoN");
    }

    #[test]
    fn push_key_file_is_made_once_private_and_checked() {
        let home = tempfile::tempdir().unwrap();
        let keys = Keys::open(home.path()).unwrap();
        assert_eq!(bytes(&keys.public).len(), POINT);
        assert_eq!(Keys::open(home.path()).unwrap().public, keys.public);
        let path = home.path().join(KEY_FILE);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);

        let (peer_public, auth) = (bytes(THEIRS), bytes(SECRET));
        let message = keys.seal(&peer_public, &auth, b"hello").unwrap();
        assert_eq!(message.len(), 21 + POINT + FILL + 16);
        assert_ne!(keys.seal(&peer_public, &auth, b"hello").unwrap(), message, "each has a key of its own");
        assert_eq!(keys.seal(&peer_public, &auth, b"hello, you").unwrap().len(), message.len(), "length says little");
        assert!(keys.seal(&peer_public, &auth[1..], b"hello").is_none());
        assert!(keys.seal(&[4; POINT], &auth, b"hello").is_none(), "a point that is not on the curve");
        assert!(keys.seal(&peer_public, &auth, &[0; 4000]).is_none(), "services take 4096 bytes");

        std::fs::write(&path, "nonsense").unwrap();
        assert!(Keys::open(home.path()).err().unwrap().contains("push.key"));
    }
}
