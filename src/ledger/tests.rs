use std::time::Duration;

use futures_util::FutureExt as _;

use super::*;

fn small() -> Ledger {
    let of = |limit: usize| limit * 100;
    Ledger::new(LedgerLimits {
        gateway: of(10),
        strangers: of(1),
        clients: of(6),
        device: of(4),
        connection: of(3),
        agents: of(8),
        runtime: of(5),
        session: of(2),
        exempt: of(100),
    })
}

fn used(ledger: &Ledger) -> Vec<usize> {
    ledger.sums().into_iter().map(|sum| sum.used).collect()
}

#[test]
fn charge_counts_in_every_parent_account_until_released() {
    let ledger = small();
    let one = ledger.connection("phone");
    let mut charge = one.charge(100).unwrap();
    assert_eq!(used(&ledger), [100, 0, 100, 100, 100, 0, 0, 0, 0]);
    charge.resize(250).unwrap();
    let other = ledger.session("s", "gemini").charge(50).unwrap();
    assert_eq!(used(&ledger), [300, 0, 250, 250, 250, 50, 50, 50, 0]);
    charge.resize(10).unwrap();
    charge.join(one.charge(5).unwrap());
    assert_eq!((charge.bytes(), one.used()), (15, 15));
    drop((charge, other));
    assert_eq!(used(&ledger), [0; 9]);
}

#[test]
fn limits_hold_separately_and_a_refusal_leaves_no_charge() {
    let ledger = small();
    let class = |outcome: Result<Charge, LedgerFull>| outcome.unwrap_err().class;
    assert_eq!(class(ledger.connection("phone").charge(301)), Class::Connection);
    let held: Vec<Charge> = (0..4).map(|_| ledger.connection("phone").charge(100).unwrap()).collect();
    assert_eq!(class(ledger.connection("phone").charge(1)), Class::Device);
    let more: Vec<Charge> = (0..2).map(|_| ledger.connection("desk").charge(100).unwrap()).collect();
    assert_eq!(class(ledger.connection("desk").charge(1)), Class::Clients);
    let agent = ledger.runtime("gemini").charge(400).unwrap();
    assert_eq!(class(ledger.session("s", "codex").charge(1)), Class::Gateway);
    assert_eq!(used(&ledger), [1000, 0, 600, 600, 600, 400, 400, 0, 0]);
    drop((held, more, agent));
    assert_eq!(used(&ledger), [0; 9]);
    let refusals: Vec<u64> = ledger.sums().into_iter().map(|sum| sum.refusals).collect();
    assert_eq!(refusals, [1, 0, 1, 1, 1, 0, 0, 0, 0]);
}

#[test]
fn charge_that_lasts_leaves_half_of_each_account() {
    let ledger = small();
    let full = |outcome: Result<Charge, LedgerFull>| outcome.map_err(|full| (full.class, full.limit)).unwrap_err();
    let one = ledger.session("s1", "gemini").charge_long_lived(100).unwrap();
    assert_eq!(full(ledger.session("s1", "gemini").charge_long_lived(1)), (Class::Session, 100));
    let two = ledger.session("s2", "gemini").charge_long_lived(100).unwrap();
    assert_eq!(full(ledger.session("s3", "gemini").charge_long_lived(51)), (Class::Runtime, 250));
    let more = ["a", "b"].map(|name| ledger.session(name, name).charge_long_lived(100).unwrap());
    assert_eq!(full(ledger.session("c", "c").charge_long_lived(1)), (Class::Agents, 400));
    // What comes and goes has the other half.
    let line = ledger.runtime("c").charge(300).unwrap();
    drop((one, two, more, line));
    assert_eq!(used(&ledger), [0; 9]);
}

#[test]
fn charge_that_cannot_grow_stays_unchanged() {
    let ledger = small();
    let mut charge = ledger.connection("phone").charge(200).unwrap();
    assert_eq!(charge.resize(301).unwrap_err().limit, 300);
    assert_eq!((charge.bytes(), used(&ledger)[0]), (200, 200));
}

#[tokio::test]
async fn waiter_resumes_once_there_is_room_and_never_waits_in_vain() {
    let ledger = small();
    let runtime = ledger.runtime("gemini");
    let held = runtime.charge(450).unwrap();
    let waiting = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.wait(100).await.bytes() }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(held);
    assert_eq!(tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap(), 100);
    assert_eq!(runtime.wait(1 << 40).await.bytes(), 500);
    assert_eq!(used(&ledger), [0; 9]);
}

#[test]
fn concurrent_charges_never_pass_a_limit_and_leave_nothing() {
    let ledger = small();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (ledger, device) = (&ledger, ["phone", "desk"][n % 2]);
            scope.spawn(move || {
                for _ in 0..2000 {
                    let charge = ledger.connection(device).charge(150);
                    assert!(ledger.sums()[Class::Clients as usize].used <= 600 + 8 * 150);
                    assert!(ledger.shared.clients.used() <= 600);
                    drop(charge);
                }
            });
        }
    });
    assert_eq!(used(&ledger), [0; 9]);
}

#[tokio::test]
async fn waiters_on_each_other_resume_one_after_the_other() {
    let ledger = small();
    let (one, other) = (ledger.runtime("gemini"), ledger.runtime("codex"));
    let (mut first, second) = (one.charge(400).unwrap(), other.charge(400).unwrap());
    assert!(first.resize(450).is_err());
    let mut exempt = ledger.exempt().await;
    exempt.resize(10_000);
    first.resize(100).unwrap();
    assert_eq!((used(&ledger)[Class::Exempt as usize], used(&ledger)[Class::Agents as usize]), (10_000, 500));
    ledger.connection("phone").charge(100).expect("clients have room beside it");
    let waiting = tokio::spawn({
        let ledger = ledger.clone();
        async move { ledger.exempt().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished(), "one at a time");
    drop((exempt, first));
    tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap();
    drop(second);
    assert_eq!(used(&ledger), [0; 9]);
}

#[test]
fn unused_account_names_are_forgotten() {
    let ledger = small();
    for n in 0..10_000 {
        ledger.connection(&format!("d_{n}"));
    }
    assert!(ledger.shared.named.lock().len() < 100);
}

#[test]
fn ledger_report_names_accounts_near_a_limit_and_the_sums() {
    let ledger = small();
    let _charge = ledger.connection("phone").charge(300).unwrap();
    let _other = ledger.connection("phone").charge(50).unwrap();
    let near = ledger.near(80);
    assert_eq!(near, [Near { class: Class::Device, name: "phone".into(), used: 350, limit: 400 }]);
    let text = ledger.text();
    assert!(text.contains("plexus_ledger_bytes{account=\"device\"} 350\n"), "{text}");
    assert!(text.contains("plexus_ledger_limit_bytes{account=\"gateway\"} 1000\n"), "{text}");
}

#[test]
fn ledger_always_has_room_for_a_line_and_for_agents() {
    let limits = LedgerLimits::default().with_capacity_for(256 << 20);
    assert!(limits.runtime > 256 << 20 && limits.agents >= limits.runtime && limits.gateway >= limits.agents);
    let limits = LedgerLimits { clients: 1 << 30, ..LedgerLimits::default() }.with_capacity_for(1 << 20);
    assert_eq!(limits.gateway, (1 << 30) + LedgerLimits::APART);
    assert_eq!(LedgerLimits::default().with_capacity_for(64 << 20), LedgerLimits::default());
}

#[tokio::test]
async fn devices_that_hold_much_leave_room_for_small_charges() {
    let ledger = Ledger::new(LedgerLimits::default());
    let LedgerLimits { clients, device, .. } = *ledger.limits();
    let greedy: Vec<Charge> = (0..30)
        .flat_map(|n| {
            let device = ledger.connection(&format!("greedy-{}", n % 3));
            std::iter::from_fn(move || device.charge(SMALL_DEVICE).ok())
        })
        .collect();
    let held: usize = greedy.iter().map(Charge::bytes).sum();
    assert!(held <= clients - clients / RESERVED_PART && held > device, "{held}");
    let refused = ledger.connection("greedy-0").charge(2 * SMALL_DEVICE).unwrap_err();
    assert_eq!(refused.class, Class::Clients);
    // Waiting does not get around it, nor being another connection of the same device.
    assert!(ledger.connection("greedy-1").wait(SMALL_DEVICE).now_or_never().is_none());
    let small: Vec<Charge> = (0..clients / RESERVED_PART / SMALL_DEVICE)
        .map(|n| ledger.connection(&format!("phone-{n}")).charge(SMALL_DEVICE).unwrap())
        .collect();
    drop(greedy);
    drop(small);
    assert_eq!(used(&ledger)[Class::Clients as usize], 0);
    // The most that an account may hold can be charged once no other account holds anything.
    let alone = ledger.connection("greedy-0");
    assert_eq!(alone.charge(alone.max()).unwrap().bytes(), alone.max());
}
