//! curl's special transfers: many at once with its multi interface, and ranges.

use saiga_trials::{
    parity::Arm::Library,
    witness::{
        EVIDENCE, Evidence, Site,
        nginx::{Nginx, SIZES, Setup, check, content, fetch},
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
            let mut curl = fetch(&site, Library, port, (20, &SIZES), "many");
            curl.args(["--parallel", "--parallel-max", "12"]);
            site.done(curl);
            check(&site, (20, &SIZES), "many");
            let mut curl = site.command("curl", Library);
            curl.args(["-sS", "--fail", "-r", "100000-1200000", "-o", "part"]);
            curl.arg(format!("http://127.0.0.1:{port}/f1500000"));
            site.done(curl);
            let part = std::fs::read(site.path("part")).expect("curl wrote it");
            assert!(part == content(1_500_000)[100_000..=1_200_000]);
        }
        // On a busy machine, curl may never wait long enough for the default evidence.
        assert!(
            nginx.upgrades() > 0 || evidence == Evidence::Default,
            "{evidence:?}"
        );
        nginx.end();
    }
}
