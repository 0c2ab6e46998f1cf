//! `plexus devices`: lists, renames and revokes paired devices.

use clap::{Args, Subcommand};
use plexus_protocol::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::client::{Client, choose};
use crate::cli::failure::{CommandFailure, CommandResult, FAILURE};
use crate::cli::output::{Paint, age, line, print, print_json, table};

/// Longest name or list of permissions shown, in characters.
const TEXT_MAX: usize = 80;

/// List, rename and revoke paired devices
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DevicesArgs {
    /// Output JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<DevicesAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DevicesAction {
    /// Rename a device
    Rename {
        /// The device's name, or a unique prefix of its identifier
        device: String,
        /// The new name
        name: String,
    },
    /// Revoke a device's access immediately
    Revoke {
        /// The device's name, or a unique prefix of its identifier
        #[arg(required_unless_present = "local_browsers")]
        device: Option<String>,
        /// Sign out all browsers on this machine instead
        #[arg(long, conflicts_with = "device")]
        local_browsers: bool,
    },
}

/// A device, as the gateway lists it.
#[derive(Debug, Deserialize)]
struct ListedDevice {
    device_id: String,
    name: String,
    kind: String,
    scopes: Vec<String>,
    runtimes: Option<Vec<String>>,
    approve_up_to: Option<String>,
    last_seen_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    online: bool,
    you: bool,
}

impl ListedDevice {
    fn last_seen(&self) -> String {
        match self.last_seen_at {
            _ if self.online => "online".into(),
            Some(at) => format!("{} ago", age(at)),
            None => "never".into(),
        }
    }

    fn permissions(&self) -> String {
        let mut permissions = self.scopes.join(",");
        if let Some(up_to) = &self.approve_up_to {
            permissions += &format!(" up to {up_to}");
        }
        if let Some(runtimes) = &self.runtimes {
            permissions += &format!(" with {}", runtimes.join(","));
        }
        if let Some(at) = self.expires_at {
            permissions += &format!(" until {at}");
        }
        permissions
    }
}

/// Lists the devices, renames one, or revokes one.
pub(crate) async fn run(args: DevicesArgs) -> CommandResult {
    let client = Client::find().await?;
    let list: Value = client.get("/v1/devices", "listing the devices").await?;
    if args.json && args.action.is_none() {
        print_json(&list)?;
        return Ok(0);
    }
    #[derive(Deserialize)]
    struct List {
        devices: Vec<ListedDevice>,
    }
    let List { devices } = serde_json::from_value(list)?;
    match args.action {
        None => {
            let rows: Vec<Vec<String>> = devices
                .iter()
                .map(|device| {
                    let kind = if device.you { format!("{} (you)", device.kind) } else { device.kind.clone() };
                    vec![
                        device.device_id.clone(),
                        line(&device.name, TEXT_MAX),
                        kind,
                        device.last_seen(),
                        line(&device.permissions(), TEXT_MAX),
                    ]
                })
                .collect();
            print(&table(Paint::stdout(), &["DEVICE", "NAME", "KIND", "SEEN", "MAY"], &rows))?;
        }
        Some(DevicesAction::Rename { device, name }) => {
            let device = find_device(devices, &device)?;
            let path = format!("/v1/devices/{}", device.device_id);
            client.patch(&path, &json!({ "name": name }), "renaming the device").await?;
            print(&format!("{} is {} now\n", line(&device.name, TEXT_MAX), line(&name, TEXT_MAX)))?;
        }
        Some(DevicesAction::Revoke { device: None, .. }) => {
            #[derive(Deserialize)]
            struct RevokedCount {
                revoked: usize,
            }
            let response =
                client.delete_with_response("/v1/local-browsers", "signing out the browsers on this machine").await?;
            let RevokedCount { revoked } = serde_json::from_value(response)?;
            print(&match revoked {
                0 => "no browser on this machine is signed in\n".to_owned(),
                1 => "signed out 1 browser on this machine\n".to_owned(),
                n => format!("signed out {n} browsers on this machine\n"),
            })?;
        }
        Some(DevicesAction::Revoke { device: Some(device), .. }) => {
            let device = find_device(devices, &device)?;
            client.delete(&format!("/v1/devices/{}", device.device_id), "revoking the device").await?;
            print(&format!("revoked {} ({})\n", line(&device.name, TEXT_MAX), device.device_id))?;
        }
    }
    Ok(0)
}

/// The device that a person named: by its name, if unique, or by a prefix of its identifier.
fn find_device(devices: Vec<ListedDevice>, name: &str) -> anyhow::Result<ListedDevice> {
    let count = devices.iter().filter(|device| device.name == name).count();
    match devices.iter().position(|device| device.name == name) {
        Some(at) if count == 1 => devices.into_iter().nth(at).ok_or_else(|| CommandFailure::plain("gone")),
        Some(_) => {
            let message = format!("{count} devices have that name: use the identifier, which `plexus devices` shows");
            Err(CommandFailure::new(FAILURE, message).into())
        }
        None => choose(devices, name, |device| device.device_id.as_str(), "device", "`plexus devices` lists them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_is_found_by_name_or_by_identifier_prefix() {
        let device = |id: &str, name: &str| -> ListedDevice {
            serde_json::from_value(json!({
                "device_id": id, "name": name, "kind": "device", "scopes": [], "online": false, "you": false,
            }))
            .unwrap()
        };
        let all = || vec![device("d_abc", "phone"), device("d_abd", "tablet"), device("d_xyz", "tablet")];
        assert_eq!(find_device(all(), "phone").unwrap().device_id, "d_abc");
        assert_eq!(find_device(all(), "d_x").unwrap().device_id, "d_xyz");
        assert!(
            find_device(all(), "tablet").is_err()
                && find_device(all(), "d_ab").is_err()
                && find_device(all(), "x_").is_err()
        );
    }
}
