//! Random identifiers.

/// Makes an identifier of 32 hexadecimal digits that cannot be guessed.
pub(crate) fn random_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(data_encoding::HEXLOWER.encode(&bytes))
}
