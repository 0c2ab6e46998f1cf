//! Random identifiers.

/// An identifier that nobody can guess, of 32 hexadecimal digits.
pub(crate) fn random_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(data_encoding::HEXLOWER.encode(&bytes))
}
