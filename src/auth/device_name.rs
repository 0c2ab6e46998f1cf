//! Names of devices.

use unicode_general_category::{GeneralCategory, get_general_category};

use super::AuthError;

/// Maximum length of the name of a device, in characters.
pub(super) const NAME_CHARS: usize = 64;

/// Checks a name, and trims it.
pub(super) fn valid_name(name: &str) -> Result<String, AuthError> {
    use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator, PrivateUse, Surrogate, Unassigned};
    let name = name.trim();
    let bad = |c: char| {
        matches!(
            get_general_category(c),
            Control | Format | LineSeparator | ParagraphSeparator | PrivateUse | Surrogate | Unassigned
        )
    };
    if name.is_empty() || name.chars().count() > NAME_CHARS || name.chars().any(bad) {
        return Err(AuthError::Invalid(format!("a device's name is 1 to {NAME_CHARS} visible characters")));
    }
    Ok(name.into())
}
