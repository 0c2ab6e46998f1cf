//! Tests of the crate as a whole, by subject.

mod act_tests;
mod conformance_tests;
mod fold_tests;
mod hostile_tests;
mod show_tests;
mod text_tests;

use plexus_protocol::Timestamp;
use serde_json::{Value, json};

use plexus_protocol::api::surfaces::DataChange;

use crate::{Change, Show, SurfaceError, SurfaceSet, Update};

pub(super) fn at(n: i64) -> Timestamp {
    Timestamp::from_millis(1_763_717_400_000 + n)
}

/// Runs a command given as JSON.
pub(super) fn show(set: &mut SurfaceSet, show: Value) -> Result<Change, SurfaceError> {
    set.show(serde_json::from_value::<Show>(show).unwrap(), at(0))
}

pub(super) fn update(set: &mut SurfaceSet, update: Value) -> Result<Change, SurfaceError> {
    set.update(serde_json::from_value::<Update>(update).unwrap(), at(0))
}

/// Makes a set with one surface `s` of these components and this data.
pub(super) fn surface(components: Value, data: Value) -> SurfaceSet {
    let mut set = SurfaceSet::default();
    show(&mut set, json!({"surface": "s", "components": components, "data": data})).unwrap();
    set
}

pub(super) fn bytes(set: &SurfaceSet) -> String {
    serde_json::to_string(set).unwrap()
}

pub(super) fn data(path: &str, value: Option<Value>, append: Option<Vec<Value>>) -> DataChange {
    DataChange { path: path.to_owned(), value, append }
}
