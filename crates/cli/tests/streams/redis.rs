//! A real Redis that writes and rewrites its append-only file under the gate: every byte has a
//! label.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use saiga_streams::hint::Hint;
use saiga_trials::witness::await_true;

use crate::site::{Site, hint, metric, run, written};
use crate::support::text;

struct Redis {
    server: Child,
    socket: String,
}

impl Redis {
    fn start(site: &Site, data: &Path) -> Self {
        let socket = text(&site.path("redis.sock")).to_owned();
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--unixsocket", &socket, "--dir", text(data)]);
        command.args([
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--save",
            "",
        ]);
        let server = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut redis = Self { server, socket };
        // Its own ready message; the pipe stays open for later messages.
        let mut log = std::io::BufReader::new(redis.server.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready to accept connections")
            && !line.contains("Ready to accept connections")
        {
            line.clear();
            assert_ne!(
                std::io::BufRead::read_line(&mut log, &mut line).unwrap(),
                0,
                "Redis ended"
            );
        }
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        redis
    }

    fn say(&self, words: &[&str]) -> String {
        let output = Command::new("redis-cli")
            .args(["-s", &self.socket])
            .args(words)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Rewrites the append-only file and waits until that is done.
    fn rewrite(&self) {
        let answer = self.say(&["bgrewriteaof"]);
        assert!(
            answer.contains("append only file rewriting started"),
            "{answer}"
        );
        let done = "aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0";
        let state = || self.say(&["info", "persistence"]);
        await_true(|| state().contains(done), state);
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn redis_writes_no_byte_without_a_label() {
    for kind in ["ext4", "xfs"] {
        let mut site = Site::new();
        let data = site.disk(kind);
        // The directory exists, as on every start of Redis except the first.
        fs::create_dir(data.join("appendonlydir")).unwrap();
        let metrics = site.path("saiga.prom");
        let more = [
            "--rules",
            "redis",
            "--mode",
            "gate",
            "--stall-limit",
            "60s",
            "--metrics",
            text(&metrics),
        ];
        let mut labeller = site.labeller(&data, &more);
        let mut redis = Redis::start(&site, &data);
        for _ in 0..3 {
            run(
                "redis-benchmark",
                &[
                    "-s",
                    &redis.socket,
                    "-q",
                    "-t",
                    "set",
                    "-n",
                    "2000",
                    "-r",
                    "1000",
                    "-d",
                    "512",
                ],
            );
            redis.rewrite();
        }
        assert_eq!(redis.say(&["save"]), "OK\n");
        let files: Vec<_> = fs::read_dir(data.join("appendonlydir"))
            .unwrap()
            .map(|it| it.unwrap().path())
            .collect();
        assert!(files.len() >= 3, "{files:?}");
        for file in &files {
            assert_eq!(hint(file), Hint::Medium, "{kind} {}", file.display());
        }
        let snapshot = data.join("dump.rdb");
        assert_eq!(hint(&snapshot), Hint::Short);
        let snapshot_bytes = fs::metadata(&snapshot).unwrap().len();
        redis.say(&["shutdown", "nosave"]);
        redis.server.wait().unwrap();
        assert_eq!(labeller.end(), Some(0));
        let (set, gated) = (
            metric(&metrics, "labels_set_total"),
            metric(&metrics, "labels_gated_total"),
        );
        assert_eq!(
            set, gated,
            "{kind}: a label came after the open that made its file: {:#?}",
            labeller.said
        );
        // Base and increment of the start and of three rewrites, temporary files, manifests, the
        // snapshot.
        assert!(gated >= 10, "{kind}: {gated}");
        assert_eq!(metric(&metrics, "labels_lost_total"), 0);
        // Seen by the block layer: 6000 values of 512 bytes in the append-only files alone.
        let (short, medium) = (written(&metrics, "short"), written(&metrics, "medium"));
        assert!(short >= snapshot_bytes, "{kind}: {short}");
        assert!(medium >= 6000 * 512, "{kind}: {medium}");
        assert_eq!(metric(&metrics, "writes_uncounted_total"), 0);
    }
}
