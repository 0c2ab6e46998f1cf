//! `plexus repair`: makes a new database from the readable part of a damaged one.

use anyhow::Context as _;
use clap::Args;

use crate::cli::failure::{CommandResult, FAILURE};
use crate::cli::home::Home;
use crate::cli::output::print;

/// Repair a damaged database while no gateway runs; everything readable and the damaged files are kept
#[derive(Debug, Args)]
pub(crate) struct RepairArgs {}

pub(crate) fn run() -> CommandResult {
    let home = Home::find()?;
    let repaired = plexus_store::repair(home.dir()).context("nothing was changed")?;
    let Some(report) = repaired else {
        print(&format!("No damage was found in {}; nothing was changed.\n", home.dir().display()))?;
        return Ok(0);
    };
    let mut out = String::new();
    for table in &report.tables {
        let lost = match table.damaged {
            0 => String::new(),
            1 => ", 1 place could not be read".to_owned(),
            places => format!(", {places} places could not be read"),
        };
        out.push_str(&format!("{:<10} {} rows kept{lost}\n", table.name, table.rows));
    }
    if report.without_session > 0 {
        out.push_str(&format!(
            "{} blocks of events belong to sessions that could not be read\n",
            report.without_session
        ));
    }
    out.push_str(&format!(
        "The damaged files are in {}. Start the gateway: clients read everything again.\n",
        report.copies.display()
    ));
    print(&out)?;
    let lost = report.without_session > 0 || report.tables.iter().any(|table| table.damaged > 0);
    Ok(if lost { FAILURE } else { 0 })
}
