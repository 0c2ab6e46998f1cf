//! The user of the process at the other end of a local connection. Linux only, from `/proc/net/tcp`.

use std::io::BufRead;
use std::net::SocketAddr;

use super::listen::ConnHandle;

/// The system's lists of connections: IPv4, and IPv6 with mapped IPv4.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// The file with the user id that represents users outside the own namespace.
const OVERFLOW_UID_FILE: &str = "/proc/sys/kernel/overflowuid";
/// The usual value of [`OVERFLOW_UID_FILE`], if the file cannot be read.
const OVERFLOW_UID: u32 = 65_534;
/// The state of a connection open at both ends. A connection that its process has closed has no owner and is listed under user 0.
const ESTABLISHED: &str = "01";

/// Returns whether the other end is a process of the gateway's user; `false` if unknown. Cancellation safe.
pub(super) async fn is_own_user(handle: &ConnHandle) -> bool {
    // Over TLS the process may be a proxy.
    let Some(Ok(local_addr)) = handle.raw.as_ref().map(|raw| raw.socket.local_addr()) else { return false };
    let peer = handle.peer;
    // The list is long if there are many connections.
    tokio::task::spawn_blocking(move || belongs_to_own_user(peer, local_addr)).await.unwrap_or(false)
}

fn belongs_to_own_user(peer: SocketAddr, local_addr: SocketAddr) -> bool {
    let me = rustix::process::geteuid().as_raw();
    let overflow_uid = std::fs::read_to_string(OVERFLOW_UID_FILE).ok().and_then(|text| text.trim().parse().ok());
    if !peer.ip().to_canonical().is_loopback() || me == overflow_uid.unwrap_or(OVERFLOW_UID) {
        return false;
    }
    let tables = TABLES.iter().filter_map(|path| std::fs::File::open(path).ok());
    let owner = tables.into_iter().find_map(|table| owner(std::io::BufReader::new(table), peer, local_addr));
    owner == Some(me)
}

/// Returns the user of the socket from `peer` to `local_addr`, in one of the system's lists.
fn owner(table: impl BufRead, peer: SocketAddr, local_addr: SocketAddr) -> Option<u32> {
    let (peer, local_addr) = (spellings(peer), spellings(local_addr));
    for line in table.lines() {
        let line = line.ok()?;
        let mut columns = line.split_ascii_whitespace().skip(1);
        let (Some(local), Some(remote), Some(state)) = (columns.next(), columns.next(), columns.next()) else {
            continue;
        };
        if state == ESTABLISHED && peer.iter().any(|one| one == local) && local_addr.iter().any(|one| one == remote) {
            // Columns skipped: queues, timer, retransmits before the uid; timeouts before the inode.
            let (uid, inode) = (columns.nth(3)?, columns.nth(1)?);
            return if inode == "0" { None } else { uid.parse().ok() };
        }
    }
    None
}

/// Returns an address in the forms of the lists: words in the machine's byte order. IPv4 may be in both lists.
fn spellings(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let hex = |octets: &[u8]| -> String {
        let chunks = octets.as_chunks::<4>().0.iter();
        chunks.map(|word| format!("{:08X}", u32::from_ne_bytes(*word))).collect()
    };
    match address.ip().to_canonical() {
        std::net::IpAddr::V4(v4) => vec![
            format!("{}:{port:04X}", hex(&v4.octets())),
            format!("{}:{port:04X}", hex(&v4.to_ipv6_mapped().octets())),
        ],
        std::net::IpAddr::V6(v6) => vec![format!("{}:{port:04X}", hex(&v6.octets()))],
    }
}

#[cfg(all(test, target_os = "linux", target_endian = "little"))]
mod tests {
    use super::*;

    #[test]
    fn peer_owner_is_that_of_the_other_socket_while_it_is_open() {
        let line = |local: &str, remote: &str, state: &str, uid: u32, inode: u32| {
            format!(
                "   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000  {uid}        0 {inode} 1 0 20 4 30 10 -1\n"
            )
        };
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        // 127.0.0.1:50000 to 127.0.0.1:7431
        let (peer, local_addr): (SocketAddr, SocketAddr) =
            ("127.0.0.1:50000".parse().unwrap(), "127.0.0.1:7431".parse().unwrap());
        let (a, b) = ("0100007F:C350", "0100007F:1D07");
        let mapped = |text: &str| format!("0000000000000000FFFF0000{text}");
        let cases = [
            (line(a, b, "01", 1000, 7), Some(1000)),
            // Our own end of it is not the other end.
            (line(b, a, "01", 1000, 7), None),
            (line(b, a, "01", 5, 7) + &line(a, b, "01", 1000, 8), Some(1000)),
            // Let go of: shown as user 0's.
            (line(a, b, "04", 0, 0), None),
            (line(a, b, "01", 0, 0), None),
            (line(a, b, "06", 1000, 7), None),
            (line(a, "0100007F:1D08", "01", 1000, 7), None),
            (line("0100007F:C351", b, "01", 1000, 7), None),
            (line(&mapped(a), &mapped(b), "01", 1001, 7), Some(1001)),
            ("junk\n\n".into(), None),
            (format!("   0: {a} {b} 01\n"), None),
        ];
        for (lines, expected) in cases {
            assert_eq!(owner(format!("{head}{lines}").as_bytes(), peer, local_addr), expected, "{lines}");
        }
        let v6 = line("00000000000000000000000001000000:C350", "00000000000000000000000001000000:1D07", "01", 1000, 7);
        let (peer, local_addr) = ("[::1]:50000".parse().unwrap(), "[::1]:7431".parse().unwrap());
        assert_eq!(owner(v6.as_bytes(), peer, local_addr), Some(1000));
    }

    #[tokio::test]
    async fn peer_in_this_process_belongs_to_this_user() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = tokio::net::TcpListener::bind(at).await else { continue };
            let local_addr = listener.local_addr().unwrap();
            let client = tokio::net::TcpStream::connect(local_addr).await.unwrap();
            let peer = client.local_addr().unwrap();
            assert!(belongs_to_own_user(peer, local_addr), "{at}");
            assert!(
                !belongs_to_own_user(local_addr, peer),
                "{at}: nobody has accepted it yet, so that end is nobody's"
            );
            let (served, _) = listener.accept().await.unwrap();
            assert!(
                belongs_to_own_user(peer, local_addr)
                    && !belongs_to_own_user("192.0.2.1:5".parse().unwrap(), local_addr)
            );
            drop((client, served));
        }
    }
}
