//! html
use crate::model::Document;
/// x
pub fn render(_d: &Document) -> String {
    String::new()
}
