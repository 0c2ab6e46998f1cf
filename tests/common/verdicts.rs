//! Cells of the tables in the documentation that have a verdict for each agent.

use std::collections::BTreeMap;

/// The cell of the verdicts of agents. A verdict of more than half of them comes first, without their names; every other one follows the
/// names of its agents.
pub fn cell(verdicts: &[(&str, &str)]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for &(agent, verdict) in verdicts {
        match groups.iter_mut().find(|(known, _)| *known == verdict) {
            Some((_, agents)) => agents.push(agent),
            None => groups.push((verdict, vec![agent])),
        }
    }
    let is_rule = |agents: &[&str]| agents.len() * 2 > verdicts.len();
    groups.sort_by_key(|(_, agents)| !is_rule(agents));
    let texts = groups.iter().map(|(verdict, agents)| match is_rule(agents) {
        true => (*verdict).to_owned(),
        false => format!("{}: {verdict}", agents.join(", ")),
    });
    texts.collect::<Vec<_>>().join("<br>")
}

/// The verdict of each of the agents in a cell.
pub fn read_cell(cell: &str, agents: &[&str]) -> BTreeMap<String, String> {
    let mut verdicts = BTreeMap::new();
    for part in cell.split("<br>") {
        let named = part.split_once(": ").map(|(names, verdict)| (names.split(", ").collect::<Vec<_>>(), verdict));
        let (names, verdict) = match named {
            Some((names, verdict)) if names.iter().all(|name| agents.contains(name)) => (names, verdict),
            _ => (agents.to_vec(), part),
        };
        verdicts.extend(names.into_iter().map(|name| (name.to_owned(), verdict.to_owned())));
    }
    verdicts
}
