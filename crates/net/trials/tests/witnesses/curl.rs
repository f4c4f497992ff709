//! curl's own ways: many transfers at once by its multi interface, and ranges.

use saiga_trials::{
    parity::Arm::Library,
    witness::{
        EVIDENCE, Site,
        nginx::{Nginx, Setup, check_all, content, fetch_all},
    },
};

#[test]
fn curl_fetches_in_parallel_and_by_range() {
    for evidence in EVIDENCE {
        let site = Site::new(evidence);
        let nginx = Nginx::start(
            &site,
            Library,
            Setup {
                reuseport: true,
                by_root: true,
            },
        );
        for port in [nginx.port, nginx.proxy] {
            let mut curl = fetch_all(&site, Library, port, 20, "many");
            curl.args(["--parallel", "--parallel-max", "12"]);
            site.done(curl);
            check_all(&site, 20, "many");
            let mut curl = site.command("curl", Library);
            curl.args(["-sS", "--fail", "-r", "100000-2000000", "-o", "part"]);
            curl.arg(format!("http://127.0.0.1:{port}/f3000000"));
            site.done(curl);
            let part = std::fs::read(site.path("part")).expect("curl wrote it");
            assert!(part == content(3_000_000)[100_000..=2_000_000]);
        }
        assert!(nginx.upgrades() > 0, "{evidence:?}");
        nginx.end();
    }
}
