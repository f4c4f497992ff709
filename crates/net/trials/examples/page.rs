//! Prints the status page of a process: `cargo run -p saiga-trials --example page -- PID`.

fn main() {
    let pid = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .expect("a pid");
    let page = saiga_status::reader::Page::open(pid).expect("a process under the library");
    println!("{:#?}", page.snapshot(64).expect("the page can be read"));
}
