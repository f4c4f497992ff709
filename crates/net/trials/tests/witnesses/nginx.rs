//! nginx with several workers: kept connections, a proxy, uploads, reloads, a new binary.

use saiga_trials::{
    parity::Arm::{Kernel, Library},
    peer::Peer,
    scale::by_scale,
    witness::{
        EVIDENCE, Evidence, Site, await_true,
        nginx::{Nginx, SIZES, Setup, check, check_beginnings, content, fetch},
    },
};

const USUAL: Setup = Setup {
    reuseport: true,
    by_root: true,
};

/// Small files on connections that are still busy when a process is killed.
const LONG_LOAD: (u32, &[usize]) = (120, SIZES.split_at(4).0);

/// Enough files for a connection's upgrade with every evidence.
const SOME_LOAD: (u32, &[usize]) = (60, SIZES.split_at(4).0);

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
                // Short connections may end before their upgrade.
                let upgrades = nginx.upgrades();
                assert!(evidence != Evidence::None || upgrades > 0, "{upgrades}");
                nginx.end();
            }
        }
    }
}

/// Sizes of the uploads: within one buffer, several, many.
const UPLOADS: [usize; 3] = [10, 70_000, 300_000];

#[test]
fn nginx_accepts_uploads_through_a_proxy() {
    for evidence in EVIDENCE {
        let site = Site::new(evidence);
        let nginx = Nginx::start(&site, Library, USUAL);
        for (port, name) in [(nginx.port, "direct"), (nginx.proxy, "proxied")] {
            upload(&site, port, name, by_scale(30, 1000));
        }
        let upgrades = nginx.upgrades();
        assert!(upgrades > 0, "{evidence:?}: all uploads went by TCP");
        nginx.end();
    }
}

/// Puts files of every size, `rounds` times and a large one at the end, with one curl, which keeps
/// its connection; the stored files must equal the sent ones.
fn upload(site: &Site, port: u16, name: &str, rounds: usize) {
    let sizes = UPLOADS.repeat(rounds).into_iter().chain([5_000_000]);
    let all: Vec<(usize, usize)> = sizes.enumerate().collect();
    let mut list = String::new();
    for (at, size) in &all {
        let file = site.write(&format!("upload{size}"), content(*size));
        list += &format!(
            "upload-file={}\noutput=/dev/null\nurl=http://127.0.0.1:{port}/up/{name}{at}\n",
            file.display()
        );
    }
    let mut curl = site.command("curl", Library);
    curl.args(["-sS", "--fail", "-K"])
        .arg(site.write("uploads", list));
    site.done(curl);
    for (at, size) in all {
        let stored = std::fs::read(site.path(&format!("www/up/{name}{at}")));
        let stored = stored.expect("a stored file");
        assert!(stored == content(size), "{name} {size}");
    }
}

/// Requests continue while the configuration is reloaded and the binary is replaced: none fails.
#[test]
fn nginx_loses_no_request_over_reload_and_binary_upgrade() {
    for (evidence, reuseport) in EVIDENCE.into_iter().zip([true, false]) {
        let site = Site::new(evidence);
        let setup = Setup {
            reuseport,
            by_root: true,
        };
        let nginx = Nginx::start(&site, Library, setup);
        under_load(&site, &nginx, 400, Nginx::reload);
        under_load(&site, &nginx, 400, Nginx::replace_binary);
        under_load(&site, &nginx, 400, Nginx::reload);
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

/// Applies `what` to nginx while two curls fetch small files; every request must succeed. The proxy
/// forwards only files that fit one of nginx's buffers: nginx 1.22 forgets that it waits for the
/// rest of a response if a read returned exactly as many bytes as FIONREAD had announced (its event
/// stays "ready", no timer runs), and a worker that is asked to end then ends at once.
fn under_load<'a>(site: &Site, nginx: &Nginx<'a>, rounds: u32, what: impl FnOnce(&Nginx<'a>)) {
    let loads = [
        (nginx.port, "files", (rounds, &SIZES[..4])),
        (nginx.proxy, "proxy", (rounds, &SIZES[..3])),
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

/// curl's errors for a server that was killed: no data, less than announced, a reset, or the
/// proxy's report that this happened to it.
const GONE: [&str; 5] = [
    "curl: (7) ",
    "curl: (18) ",
    "curl: (22) The requested URL returned error: 502",
    "curl: (52) ",
    "curl: (56) ",
];

/// Kills some processes of nginx while two curls fetch: each file is correct up to its end. Returns
/// the number of failed requests.
fn killed_under_load<'a>(site: &Site, nginx: &Nginx<'a>, kill: impl FnOnce(&Nginx<'a>)) -> usize {
    let mut failed = 0;
    let loads = [(nginx.port, "files"), (nginx.proxy, "proxy")];
    let curls = loads.map(|(port, mark)| {
        let mut curl = fetch(site, Library, port, LONG_LOAD, mark);
        let errors = std::fs::File::create(site.path(&format!("{mark}.err")));
        curl.stderr(errors.expect("room in the folder"));
        (Peer::spawn(curl), mark)
    });
    for (_, mark) in &curls {
        let some = site.path(&format!("{mark}-10-1000"));
        await_true(
            || some.exists(),
            || format!("{mark} does not get there\n{}", nginx.log()),
        );
    }
    kill(nginx);
    for (curl, mark) in curls {
        curl.finish();
        let errors = site.read(&format!("{mark}.err"));
        for line in errors.lines() {
            let known = GONE.iter().any(|gone| line.starts_with(gone));
            assert!(known, "{mark}: {line}\n{}", nginx.log());
            failed += 1;
        }
        let whole = check_beginnings(site, LONG_LOAD, mark);
        assert!(whole >= 10, "{mark}: {whole} whole files\n{errors}");
    }
    failed
}

/// Checks that every request is answered, and that a running process has upgraded connections.
fn serves_upgraded(site: &Site, nginx: &Nginx<'_>, when: &str) {
    site.done(fetch(site, Library, nginx.port, SOME_LOAD, "again"));
    check(site, SOME_LOAD, "again");
    assert!(nginx.upgrades() > 0, "nothing is upgraded after {when}");
}

#[test]
fn nginx_is_killed_under_load_and_comes_back() {
    for (evidence, reuseport) in EVIDENCE.into_iter().zip([true, false]) {
        let site = Site::new(evidence);
        let setup = Setup {
            reuseport,
            by_root: true,
        };
        let mut nginx = Nginx::start(&site, Library, setup);
        for _ in 0..by_scale(1, 20) {
            killed_under_load(&site, &nginx, |nginx| nginx.kill_workers(1));
            serves_upgraded(&site, &nginx, "a worker");
            killed_under_load(&site, &nginx, |nginx| nginx.kill_workers(3));
            serves_upgraded(&site, &nginx, "all workers");
            // Workers serve without their master: no request fails.
            under_load(&site, &nginx, 100, Nginx::kill_master);
            let failed = killed_under_load(&site, &nginx, Nginx::kill_all);
            assert!(failed > 0, "the load was over before the kill");
            nginx.launch();
            serves_upgraded(&site, &nginx, "a new start");
        }
        nginx.end();
    }
}

/// Only the front runs under the library: it reaches the server behind it by the kernel.
#[test]
fn an_accelerated_proxy_forwards_to_a_plain_nginx() {
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
    assert!(front.upgrades() > 0, "curl's connection");
    front.end();
    back.end();
}
