//! nginx with several workers: kept connections, a proxy, uploads, reloads, a new binary.

use saiga_trials::{
    parity::Arm::{Kernel, Library},
    peer::Peer,
    witness::{
        EVIDENCE, Evidence, Site,
        nginx::{Nginx, Setup, check_all, content, fetch_all},
    },
};

const USUAL: Setup = Setup {
    reuseport: true,
    by_root: true,
};

#[test]
fn nginx_serves_and_proxies_files_of_every_size() {
    for evidence in EVIDENCE {
        for reuseport in [true, false] {
            for by_root in [true, false] {
                let site = Site::new(evidence);
                let nginx = Nginx::start(&site, Library, Setup { reuseport, by_root });
                for arm in [Kernel, Library] {
                    for port in [nginx.port, nginx.proxy] {
                        site.done(fetch_all(&site, arm, port, 6, "get"));
                        check_all(&site, 6, "get");
                    }
                }
                // By curl to either port, and from proxy to files.
                assert!(nginx.upgrades() >= 3, "{evidence:?}: {}", nginx.upgrades());
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
    for evidence in EVIDENCE {
        for reuseport in [true, false] {
            let site = Site::new(evidence);
            let nginx = Nginx::start(
                &site,
                Library,
                Setup {
                    reuseport,
                    by_root: true,
                },
            );
            let rounds = 150;
            let load = |port, mark: &str| {
                let mut curl = fetch_all(&site, Library, port, rounds, mark);
                curl.stderr(
                    std::fs::File::create(site.path(&format!("{mark}.err"))).expect("room"),
                );
                Peer::spawn(curl)
            };
            let loads = [load(nginx.port, "files"), load(nginx.proxy, "proxy")];
            nginx.reload();
            nginx.replace_binary();
            nginx.reload();
            for (load, mark) in loads.into_iter().zip(["files", "proxy"]) {
                let (_, status) = load.finish();
                let errors = site.read(&format!("{mark}.err"));
                assert!(
                    status.success(),
                    "{mark}: {status}: {errors}\n{}",
                    nginx.log()
                );
                check_all(&site, rounds, mark);
            }
            site.done(fetch_all(&site, Library, nginx.port, 6, "after"));
            check_all(&site, 6, "after");
            assert!(
                nginx.upgrades() > 0,
                "{evidence:?}: the new binary upgrades nothing"
            );
            nginx.end();
        }
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
    front_site.done(fetch_all(&front_site, Library, front.proxy, 6, "get"));
    check_all(&front_site, 6, "get");
    assert_eq!(front.upgrades(), 1, "curl's connection");
    front.end();
    back.end();
}
