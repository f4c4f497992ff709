//! nginx with several workers: kept connections, a proxy, uploads, reloads, a new binary.

use saiga_trials::{
    parity::Arm::{Kernel, Library},
    peer::Peer,
    witness::{
        EVIDENCE, Evidence, Site,
        nginx::{Nginx, SIZES, Setup, check, content, fetch},
    },
};

const USUAL: Setup = Setup {
    reuseport: true,
    by_root: true,
};

/// Every file three times.
const USUAL_LOAD: (u32, &[usize]) = (3, &SIZES);

#[test]
fn nginx_serves_and_proxies_files_of_every_size() {
    for evidence in EVIDENCE {
        for reuseport in [true, false] {
            for by_root in [true, false] {
                let site = Site::new(evidence);
                let nginx = Nginx::start(&site, Library, Setup { reuseport, by_root });
                for arm in [Kernel, Library] {
                    for port in [nginx.port, nginx.proxy] {
                        site.done(fetch(&site, arm, port, USUAL_LOAD, "get"));
                        check(&site, USUAL_LOAD, "get");
                    }
                }
                // By curl to either port and from proxy to files; the default asks for more messages.
                let least = if evidence == Evidence::None { 3 } else { 1 };
                assert!(
                    nginx.upgrades() >= least,
                    "{evidence:?}: {}",
                    nginx.upgrades()
                );
                nginx.end();
            }
        }
    }
}

#[test]
fn nginx_takes_uploads_through_a_proxy() {
    for evidence in EVIDENCE {
        let site = Site::new(evidence);
        let nginx = Nginx::start(&site, Library, USUAL);
        for (at, size) in [10, 70_000, 5_000_000, 70_000, 10].into_iter().enumerate() {
            let file = site.write("upload", content(size));
            for (port, name) in [(nginx.port, "direct"), (nginx.proxy, "proxied")] {
                let mut curl = site.command("curl", Library);
                curl.args(["-sS", "--fail", "-o", "/dev/null", "--upload-file"])
                    .arg(&file);
                curl.arg(format!("http://127.0.0.1:{port}/up/{name}{at}"));
                site.done(curl);
                let stored = std::fs::read(site.path(&format!("www/up/{name}{at}")));
                assert!(
                    stored.expect("it was stored") == content(size),
                    "{name} {size}"
                );
            }
        }
        nginx.end();
    }
}

/// Requests go on while the configuration is read again and the binary is replaced: none fails.
#[test]
fn nginx_loses_no_request_over_reload_and_binary_upgrade() {
    for (evidence, reuseport) in EVIDENCE.into_iter().zip([true, false]) {
        let site = Site::new(evidence);
        let setup = Setup {
            reuseport,
            by_root: true,
        };
        let nginx = Nginx::start(&site, Library, setup);
        under_load(&site, &nginx, Nginx::reload);
        under_load(&site, &nginx, Nginx::replace_binary);
        under_load(&site, &nginx, Nginx::reload);
        site.done(fetch(&site, Library, nginx.port, USUAL_LOAD, "after"));
        check(&site, USUAL_LOAD, "after");
        let upgrades = nginx.upgrades();
        assert!(
            upgrades > 0,
            "{evidence:?}: the new binary upgrades nothing"
        );
        nginx.end();
    }
}

/// Does `what` to nginx while two curls fetch small files; every request must succeed. The proxy
/// passes on only what fits one of nginx's buffers: nginx 1.22 forgets that it waits for the rest
/// of a response when a read has taken exactly what FIONREAD had announced (its event stays
/// "ready", no timer runs), and a worker that is told to leave then leaves at once.
fn under_load<'a>(site: &Site, nginx: &Nginx<'a>, what: impl FnOnce(&Nginx<'a>)) {
    let loads = [
        (nginx.port, "files", (400, &SIZES[..4])),
        (nginx.proxy, "proxy", (400, &SIZES[..3])),
    ];
    let curls = loads.map(|(port, mark, load)| {
        let mut curl = fetch(site, Library, port, load, mark);
        let errors = std::fs::File::create(site.path(&format!("{mark}.err")));
        curl.stderr(errors.expect("room in the folder"));
        (Peer::spawn(curl), mark, load)
    });
    what(nginx);
    for (curl, mark, load) in curls {
        let (_, status) = curl.finish();
        let errors = site.read(&format!("{mark}.err"));
        assert!(
            status.success(),
            "{mark}: {status}: {errors}\n{}",
            nginx.log()
        );
        check(site, load, mark);
    }
}

/// Only the front runs under the library: what is behind it is reached by the kernel.
#[test]
fn an_accelerated_proxy_passes_on_to_a_plain_nginx() {
    let (front_site, back_site) = (Site::new(Evidence::None), Site::new(Evidence::None));
    let back = Nginx::start(&back_site, Kernel, USUAL);
    let front = Nginx::start(&front_site, Library, USUAL);
    let passed = front_site.read("nginx.conf").replace(
        &format!("server 127.0.0.1:{};", front.port),
        &format!("server 127.0.0.1:{};", back.port),
    );
    front_site.write("nginx.conf", passed);
    front.reload();
    front_site.done(fetch(&front_site, Library, front.proxy, USUAL_LOAD, "get"));
    check(&front_site, USUAL_LOAD, "get");
    assert_eq!(front.upgrades(), 1, "curl's connection");
    front.end();
    back.end();
}
