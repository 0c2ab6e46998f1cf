//! The gateway as a service of its user: [`plan`] decides the steps, `unit` makes the file, `state` reads the manager's answer.

use etcetera::BaseStrategy as _;
use etcetera::base_strategy::Xdg;

use crate::cli::discover::agent_folders;
use crate::cli::failure::CommandFailure;
use crate::cli::home::{GatewayState, Home, user_home};
use crate::cli::programs::{stable_path, this_program};

mod manager;
mod plan;
mod state;
mod unit;

pub(crate) use manager::Manager;
pub(crate) use plan::{Facts, Step, install, restart_advice, uninstall};
pub(crate) use state::{MESSAGE_MAX, ServiceState, service_state};

/// The file of the state folder that exists while lingering is on because of the installation.
pub(crate) const LINGER_FILE: &str = "linger-enabled";

/// The service manager of this platform.
pub(crate) fn manager() -> anyhow::Result<Manager> {
    Manager::current().ok_or_else(|| {
        let os = std::env::consts::OS;
        CommandFailure::plain(format!("there is no service for {os}: run `plexus serve` under your own supervisor"))
    })
}

/// Collects the facts that decide the steps of an installation or removal.
pub(crate) async fn facts(home: &Home) -> anyhow::Result<Facts> {
    let manager = manager()?;
    let user_home = user_home()?;
    let config_folder = Xdg::new().map(|base| base.config_dir())?;
    let file = manager.file(&user_home, &config_folder);
    let exe = this_program()?;
    let folders = agent_folders(&exe).iter().map(|dir| unit::stable_folder(dir)).collect();
    // The manager does not have the variables of this shell, so the service would use another folder.
    let is_custom = ["PLEXUS_HOME", "XDG_DATA_HOME"].iter().any(|name| std::env::var_os(name).is_some());
    let state_folder = is_custom.then(|| home.dir().to_owned());
    let values = unit::UnitValues { program: stable_path(exe), folders, state_folder, user_home };
    let gateway = match home.gateway().await? {
        GatewayState::Up(running) => Some(running.pid),
        GatewayState::Down(_) => None,
    };
    Ok(Facts {
        manager,
        text: values.text(manager),
        installed: std::fs::read_to_string(&file).ok(),
        file,
        state: service_state(manager).await,
        linger: state::lingers(manager).await,
        linger_set: home.dir().join(LINGER_FILE).exists(),
        gateway,
    })
}

/// Returns the installed service and its manager, if the manager can be reached.
pub(crate) async fn installed_service() -> Option<(Manager, ServiceState)> {
    let manager = Manager::current()?;
    let state = service_state(manager).await.ok()?;
    state.file.is_some().then_some((manager, state))
}
