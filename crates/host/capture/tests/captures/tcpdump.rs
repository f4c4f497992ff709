//! tcpdump on the loopback interface.

use std::{
    io::{BufRead, BufReader, Read},
    net::{Ipv4Addr, UdpSocket},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use saiga_capture::{Mark, Options, Server, read};

/// A datagram with this payload is the last packet of a capture.
const END: &[u8] = b"the end of this capture";

/// The last packet is sent again after this time.
const AGAIN: Duration = Duration::from_secs(2);

/// tcpdump, which writes to a thread that reads until [`END`].
pub(crate) struct Tcpdump {
    process: Child,
    port: u16,
    file: mpsc::Receiver<Vec<u8>>,
}

impl Tcpdump {
    /// Captures the packets of a port, from now on.
    ///
    /// In immediate mode, each packet would take 64 KiB of the buffer, and bursts would be lost.
    pub(crate) fn start(port: u16) -> Self {
        let mut process = Command::new("tcpdump")
            .args(["-i", "lo", "-Z", "root", "-U", "-B", "65536", "-w", "-"])
            .args(["port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tcpdump is installed (tools/setup test)");
        let errors = process.stderr.take().expect("a pipe");
        let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
        let is_listening = lines.any(|line| line.contains("listening on"));
        assert!(is_listening, "tcpdump may capture on lo: it needs root");
        // The rest must not fill the pipe.
        thread::spawn(move || lines.for_each(drop));
        let output = process.stdout.take().expect("a pipe");
        let (sender, file) = mpsc::channel();
        thread::spawn(move || sender.send(until_end(output)).expect("the test waits"));
        Self {
            process,
            port,
            file,
        }
    }

    /// Ends the capture when all packets before this call are read. Returns what it says of the
    /// only server.
    pub(crate) fn finish(self) -> Server {
        let port = self.port;
        server(&self.finish_file(), port)
    }

    /// The same, with the file itself.
    pub(crate) fn finish_file(mut self) -> Vec<u8> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let file = loop {
            // Nobody listens there; the datagram is captured all the same, unless tcpdump has no
            // room for it.
            let sent = socket.send_to(END, (Ipv4Addr::LOCALHOST, self.port));
            assert_eq!(sent.expect("a datagram"), END.len());
            match self.file.recv_timeout(AGAIN) {
                Ok(file) => break file,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => panic!("no capture"),
            }
        };
        self.process.kill().expect("tcpdump runs");
        self.process.wait().expect("tcpdump ends");
        file
    }
}

/// The server at a port of a capture, which must be complete.
pub(crate) fn server(file: &[u8], port: u16) -> Server {
    let traffic = read(file, &Options::default()).expect("a capture");
    assert!(traffic.marks.iter().all(is_disorder), "{:?}", traffic.marks);
    let servers = traffic.servers.into_iter();
    let mut of_port = servers.filter(|(address, _)| address.port() == port);
    let (_, server) = of_port.next().expect("a server");
    assert!(of_port.next().is_none(), "one address");
    server
}

/// Two CPUs put packets into the capture at the same time.
fn is_disorder(mark: &Mark) -> bool {
    matches!(mark, Mark::ClockBackwards { largest, .. } if *largest < Duration::from_millis(100))
}

/// The output of tcpdump up to the last packet. It is read before it is analysed: a slow reader
/// would make tcpdump lose packets.
fn until_end(mut output: impl Read) -> Vec<u8> {
    let (mut file, mut part) = (Vec::new(), vec![0; 1 << 20]);
    while !file.ends_with(END) {
        let count = output.read(&mut part).expect("a pipe");
        assert!(count > 0, "tcpdump ended");
        file.extend_from_slice(&part[..count]);
    }
    file
}
