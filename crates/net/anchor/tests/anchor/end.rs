//! How each end learns of the other's end.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use saiga_anchor::end;
use socket2::SockRef;

use crate::world::{Gateway, REMOTE, SERVER, address, in_world};

/// Runs `case` with an anchor and the server's end, for both families.
fn with_ends(case: impl Fn(TcpStream, TcpStream) + Send + Copy + 'static) {
    in_world(move |_| {
        for (client, server) in REMOTE.into_iter().zip(SERVER) {
            let mut gateway = Gateway::new(address(server, 6000));
            let (anchor, accepted) = gateway.open(address(client, 40_001));
            case(anchor, accepted);
        }
    });
}

fn read(mut stream: &TcpStream) -> Result<usize, ErrorKind> {
    stream.read(&mut [0; 8]).map_err(|error| error.kind())
}

#[test]
fn the_client_s_fin_ends_one_direction() {
    with_ends(|mut anchor, mut accepted| {
        anchor.write_all(b"last").unwrap();
        end::finish(&anchor).unwrap();
        let mut all = Vec::new();
        accepted.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"last");
        accepted.write_all(b"answer").unwrap();
        drop(accepted);
        let mut all = Vec::new();
        anchor.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"answer");
    });
}

#[test]
fn the_client_s_reset_is_the_server_s() {
    with_ends(|anchor, accepted| {
        end::reset(anchor);
        assert_eq!(read(&accepted), Err(ErrorKind::ConnectionReset));
    });
}

#[test]
fn a_reset_reaches_a_server_that_has_unread_bytes() {
    with_ends(|mut anchor, mut accepted| {
        anchor.write_all(b"unread").unwrap();
        end::reset(anchor);
        assert_eq!(
            accepted.write(b"x").unwrap_err().kind(),
            ErrorKind::ConnectionReset
        );
    });
}

#[test]
fn the_server_s_close_is_the_end_of_stream() {
    with_ends(|anchor, accepted| {
        drop(accepted);
        assert_eq!(read(&anchor), Ok(0));
    });
}

#[test]
fn the_server_s_close_with_unread_bytes_is_a_reset() {
    with_ends(|mut anchor, accepted| {
        anchor.write_all(b"unread").unwrap();
        drop(accepted);
        assert_eq!(read(&anchor), Err(ErrorKind::ConnectionReset));
        end::finish(&anchor).unwrap();
    });
}

#[test]
fn the_server_s_reset_is_a_reset() {
    with_ends(|anchor, accepted| {
        SockRef::from(&accepted)
            .set_linger(Some(std::time::Duration::ZERO))
            .unwrap();
        drop(accepted);
        assert_eq!(read(&anchor), Err(ErrorKind::ConnectionReset));
    });
}
