//! The dialects of runtimes: those of [`plexus_dialects`], and those of agents in their own terminals ([`plexus_linked`]).

use plexus_dialects::MakeDialect;

/// Returns the constructor of the dialect with this name.
pub fn find(name: &str) -> Option<MakeDialect> {
    plexus_dialects::find(name).or_else(|| plexus_linked::find(name))
}

/// Returns the name of every dialect, in alphabetical order.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> =
        [plexus_dialects::TABLE, plexus_linked::TABLE].concat().iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_have_names_of_their_own() {
        let names = names();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        assert!(names.contains(&"acp") && names.contains(&"claude-terminal"));
    }
}
