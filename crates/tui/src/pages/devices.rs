//! The paired devices.

use super::shared::ListState;
use crate::view_model::DeviceItem;

/// The page of the devices.
#[derive(Debug, Default)]
pub(crate) struct DevicesPage {
    pub(crate) devices: Vec<DeviceItem>,
    pub(crate) list: ListState,
    /// Why the devices could not be read.
    pub(crate) problem: Option<String>,
}
