//! `plexus devices`: lists, renames and revokes paired devices.

use clap::{Args, Subcommand};
use plexus_client::calls;
use plexus_protocol::RuntimeId;
use plexus_protocol::api::devices::{DeviceChanges, DeviceView, Grant, RevokedDevices};

use crate::cli::client::{Client, choose};
use crate::cli::failure::{CommandFailure, CommandResult, FAILURE};
use crate::cli::output::{Paint, age, line, notice_unreadable, print, print_json_text, table, wire_name};

/// Maximum length of a name or a list of permissions, in characters.
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

/// The time since a device was last seen, as text.
fn last_seen(device: &DeviceView) -> String {
    match device.last_seen_at {
        _ if device.online => "online".into(),
        Some(at) => format!("{} ago", age(at)),
        None => "never".into(),
    }
}

/// The permissions of a device, as text.
fn permissions(device: &DeviceView) -> String {
    let Grant { scopes, runtimes, approve_up_to, .. } = &device.grant;
    let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    let mut permissions = scopes.join(",");
    if let Some(up_to) = approve_up_to {
        permissions += &format!(" up to {}", wire_name(up_to));
    }
    if let Some(runtimes) = runtimes {
        let runtimes: Vec<&str> = runtimes.iter().map(RuntimeId::as_str).collect();
        permissions += &format!(" with {}", runtimes.join(","));
    }
    if let Some(at) = device.expires_at {
        permissions += &format!(" until {at}");
    }
    permissions
}

/// Lists the devices, renames one, or revokes one.
pub(crate) async fn run(args: DevicesArgs) -> CommandResult {
    let client = Client::find().await?;
    let list = client.request(calls::devices(), "listing the devices").await?;
    if args.json && args.action.is_none() {
        print_json_text(&list.text)?;
        return Ok(0);
    }
    let devices = list.value.devices;
    match args.action {
        None => {
            notice_unreadable(devices.unreadable(), "device");
            let rows: Vec<Vec<String>> = devices
                .iter()
                .map(|device| {
                    let kind = wire_name(device.kind);
                    vec![
                        device.device_id.to_string(),
                        line(&device.name, TEXT_MAX),
                        if device.you { format!("{kind} (you)") } else { kind },
                        last_seen(device),
                        line(&permissions(device), TEXT_MAX),
                    ]
                })
                .collect();
            print(&table(Paint::stdout(), &["DEVICE", "NAME", "KIND", "SEEN", "MAY"], &rows))?;
        }
        Some(DevicesAction::Rename { device, name }) => {
            let device = find_device(devices.into_vec(), &device)?;
            let changes = DeviceChanges { name: Some(name.clone()), lock_screen: None };
            client.run(calls::change_device(&device.device_id, &changes), "renaming the device").await?;
            print(&format!("{} is {} now\n", line(&device.name, TEXT_MAX), line(&name, TEXT_MAX)))?;
        }
        Some(DevicesAction::Revoke { device: None, .. }) => {
            let call = calls::revoke_local_browsers();
            let RevokedDevices { revoked } = client.run(call, "signing out the browsers on this machine").await?;
            print(&match revoked {
                0 => "no browser on this machine is signed in\n".to_owned(),
                1 => "signed out 1 browser on this machine\n".to_owned(),
                n => format!("signed out {n} browsers on this machine\n"),
            })?;
        }
        Some(DevicesAction::Revoke { device: Some(device), .. }) => {
            let device = find_device(devices.into_vec(), &device)?;
            client.run(calls::revoke_device(&device.device_id), "revoking the device").await?;
            print(&format!("revoked {} ({})\n", line(&device.name, TEXT_MAX), device.device_id))?;
        }
    }
    Ok(0)
}

/// The device that the user named: by its name, if unique, or by a prefix of its identifier.
fn find_device(devices: Vec<DeviceView>, name: &str) -> anyhow::Result<DeviceView> {
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
        let device = |id: &str, name: &str| -> DeviceView {
            serde_json::from_value(serde_json::json!({
                "device_id": id, "name": name, "kind": "device", "scopes": [], "created_at": "2026-01-01T00:00:00Z",
                "online": false, "you": false, "local": false, "local_browser": false,
            }))
            .unwrap()
        };
        let all = || vec![device("d_abc", "phone"), device("d_abd", "tablet"), device("d_xyz", "tablet")];
        assert_eq!(find_device(all(), "phone").unwrap().device_id.as_str(), "d_abc");
        assert_eq!(find_device(all(), "d_x").unwrap().device_id.as_str(), "d_xyz");
        assert!(
            find_device(all(), "tablet").is_err()
                && find_device(all(), "d_ab").is_err()
                && find_device(all(), "x_").is_err()
        );
    }
}
