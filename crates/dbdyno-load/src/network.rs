//! What the kernel knows of the load's own connections and of the interface that they go through.

use std::ffi::CStr;
use std::fs;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use dbdyno_common::results::LoadNetwork;
use nix::libc;
use rustix::net::getsockname;

/// Longest `struct tcp_info` that is asked for; an older kernel fills less of it.
const INFO_BYTES: usize = 256;
/// Places of 32-bit numbers in `struct tcp_info` (`include/uapi/linux/tcp.h`), which only ever grows at its end.
const RTT: usize = 68;
const TOTAL_RETRANS: usize = 100;
const MIN_RTT: usize = 148;

/// One TCP connection; microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp {
    /// Round trip, smoothed over the last ones. A reply that comes quickly carries the acknowledgement, so the server's
    /// work on a statement is in it.
    pub rtt_us: u32,
    /// The least of the last minutes: the handshake's or a small reply's.
    pub min_rtt_us: Option<u32>,
    /// Segments that were sent again, ever.
    pub retransmits: u32,
}

impl Tcp {
    /// Of a socket; `None` where it is none of TCP.
    pub fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        let mut info = [0_u8; INFO_BYTES];
        let mut length = INFO_BYTES as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, which `info` has.
        let code = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        (code == 0).then(|| Self::of_bytes(info.get(..length as usize)?)).flatten()
    }

    fn of_bytes(info: &[u8]) -> Option<Self> {
        let at = |place: usize| info.get(place..place + 4)?.try_into().ok().map(u32::from_ne_bytes);
        // The kernel has no least round trip yet where all bits are set.
        let least = at(MIN_RTT).filter(|least| *least != u32::MAX);
        Some(Self { rtt_us: at(RTT)?, min_rtt_us: least, retransmits: at(TOTAL_RETRANS)? })
    }
}

/// What went through an interface since it came up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    name: String,
    megabits: Option<u64>,
    received: u64,
    sent: u64,
}

impl Interface {
    /// That of a socket's own address.
    fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        let address = getsockname(socket).ok().and_then(|any| std::net::SocketAddr::try_from(any).ok())?.ip();
        Self::by_name(interface_name(address)?)
    }

    fn by_name(name: String) -> Option<Self> {
        let read = |file: &str| fs::read_to_string(format!("/sys/class/net/{name}/{file}")).ok();
        let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
        let (received, sent) = (number("statistics/rx_bytes")?, number("statistics/tx_bytes")?);
        // One without a wire, such as lo, has no speed, or -1.
        Some(Self { megabits: number("speed").filter(|speed| *speed > 0), received, sent, name })
    }
}

/// The interface that has an address.
fn interface_name(address: IpAddr) -> Option<String> {
    let mut first = std::ptr::null_mut();
    // SAFETY: it is given a place for the list, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return None;
    }
    let (mut next, mut name) = (first, None);
    // SAFETY: each element is of the list, which is there until it is freed; the last one's next is null.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: an address of the list, or null, whose family says what it is.
        if name.is_none() && unsafe { ip_of(entry.ifa_addr) } == Some(address) {
            // SAFETY: a name of the list, which ends with a zero.
            name = Some(unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned());
        }
        next = entry.ifa_next;
    }
    // SAFETY: it is the list from above, of which nothing is kept.
    unsafe { libc::freeifaddrs(first) };
    name
}

/// # Safety
/// `address` is null or points to an address that is as long as its family says.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as the caller promises.
    match i32::from(unsafe { address.as_ref() }?.sa_family) {
        libc::AF_INET => {
            // SAFETY: of this family it is such a structure, which may lie anywhere.
            let v4 = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(IpAddr::from(u32::from_be(v4.sin_addr.s_addr).to_be_bytes()))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(IpAddr::from(v6.sin6_addr.s6_addr))
        }
        _ => None,
    }
}

/// The connections of one thread at one moment.
#[derive(Debug, Clone, Default)]
pub struct NetworkState {
    tcp: Vec<Tcp>,
    interface: Option<Interface>,
}

impl NetworkState {
    /// Now. It costs a system call for each connection.
    pub fn now<'a>(sockets: impl Iterator<Item = BorrowedFd<'a>>) -> Self {
        let mut seen = Self::default();
        for socket in sockets {
            if let Some(tcp) = Tcp::of(socket.as_fd()) {
                if seen.tcp.is_empty() {
                    seen.interface = Interface::of(socket);
                }
                seen.tcp.push(tcp);
            }
        }
        seen
    }

    /// Adds those of another thread.
    pub fn add(&mut self, other: Self) {
        self.tcp.extend(other.tcp);
        self.interface = self.interface.take().or(other.interface);
    }

    fn retransmits(&self) -> u64 {
        self.tcp.iter().map(|tcp| u64::from(tcp.retransmits)).sum()
    }
}

/// The network between two moments; `None` where no connection is by TCP.
pub fn between(start: &NetworkState, end: &NetworkState) -> Option<LoadNetwork> {
    let mut trips: Vec<u32> = end.tcp.iter().map(|tcp| tcp.rtt_us).collect();
    trips.sort_unstable();
    let same = end.interface.as_ref().zip(start.interface.as_ref()).filter(|(end, start)| end.name == start.name);
    let counted = |count: fn(&Interface) -> u64| same.map(|(end, start)| count(end).saturating_sub(count(start)));
    Some(LoadNetwork {
        connections: trips.len() as u64,
        rtt_us_median: *trips.get(trips.len() / 2)?,
        rtt_us_max: *trips.last()?,
        rtt_us_min: end.tcp.iter().filter_map(|tcp| tcp.min_rtt_us).min(),
        // New connections in place of others have sent less again.
        retransmits: end.retransmits().saturating_sub(start.retransmits()),
        interface: end.interface.as_ref().map(|interface| interface.name.clone()),
        interface_megabits: end.interface.as_ref().and_then(|interface| interface.megabits),
        received_bytes: counted(|interface| interface.received),
        sent_bytes: counted(|interface| interface.sent),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_connection_over_lo_has_round_trips_and_an_interface() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        let before = NetworkState::now([client.as_fd()].into_iter());
        client.write_all(&[1; 5000]).unwrap();
        server.read_exact(&mut [0; 5000]).unwrap();
        let network = between(&before, &NetworkState::now([client.as_fd()].into_iter())).unwrap();
        assert_eq!((network.connections, network.retransmits), (1, 0));
        assert!(network.rtt_us_median > 0 && network.rtt_us_median == network.rtt_us_max, "{network:?}");
        assert!(network.rtt_us_min.unwrap() <= network.rtt_us_max, "{network:?}");
        assert_eq!(network.interface.as_deref(), Some("lo"));
        assert!(network.sent_bytes.unwrap() >= 5000, "{network:?}");
        assert_eq!(network.interface_megabits, None);
    }

    #[test]
    fn a_unix_socket_has_no_network() {
        let (socket, _peer) = UnixStream::pair().unwrap();
        let seen = NetworkState::now([socket.as_fd()].into_iter());
        assert_eq!(between(&seen, &seen), None);
    }

    #[test]
    fn an_older_kernel_says_less() {
        let mut bytes = vec![0; 160];
        bytes[RTT..RTT + 4].copy_from_slice(&7_u32.to_ne_bytes());
        bytes[MIN_RTT..MIN_RTT + 4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(Tcp::of_bytes(&bytes), Some(Tcp { rtt_us: 7, min_rtt_us: None, retransmits: 0 }));
        assert_eq!(Tcp::of_bytes(&bytes[..104]).unwrap().min_rtt_us, None);
        assert_eq!(Tcp::of_bytes(&bytes[..90]), None);
    }
}
