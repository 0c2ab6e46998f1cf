//! Saves the state for the next gateway.

use serde::{Deserialize, Serialize};

use super::Codelia;

/// The version of the format; other versions are not read.
const FORM: u32 = 1;

#[derive(Serialize)]
struct Saved<'a> {
    form: u32,
    codelia: &'a Codelia,
}

#[derive(Deserialize)]
struct Found {
    form: u32,
    codelia: Codelia,
}

pub(super) fn save(codelia: &Codelia) -> Option<Vec<u8>> {
    serde_json::to_vec(&Saved { form: FORM, codelia }).ok()
}

pub(super) fn restore(saved: &[u8]) -> Option<Codelia> {
    let found: Found = serde_json::from_slice(saved).ok()?;
    (found.form == FORM).then_some(found.codelia)
}

/// A ticket as its number.
pub(super) mod ticket {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use plexus_protocol::Ticket;

    pub(in super::super) fn serialize<S: Serializer>(ticket: &Ticket, to: S) -> Result<S::Ok, S::Error> {
        ticket.0.serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Ticket, D::Error> {
        u64::deserialize(from).map(Ticket)
    }
}
