//! HTTP/1: heads are parsed by `httparse`, bodies are skipped by their length.
//!
//! Source: RFC 9112 §6.3 (message body length), §7.1 (chunked).

use std::collections::VecDeque;

use super::{Chunk, Context, Side, Trouble, kind::Kind};
use crate::{Timestamp, traffic::Budget};

/// Longer heads are not followed; servers refuse them, too.
const LONGEST_HEAD: usize = 64 << 10;
const MOST_HEADERS: usize = 128;
/// Length of the line ends behind the last header.
const END_OF_HEAD: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// In front of a head, or within one.
    Head,
    Length(u64),
    /// Within the line with the size of a part.
    Size {
        size: u64,
        has_extension: bool,
    },
    /// Within a part and the line end behind it.
    Part(u64),
    /// In the lines behind the last part.
    Trailer {
        line_is_empty: bool,
    },
    UntilClose,
}

/// One direction: the bytes of an incomplete head, and where the body is.
#[derive(Debug)]
struct Messages {
    head: Vec<u8>,
    body: Body,
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            head: Vec::new(),
            body: Body::Head,
        }
    }
}

/// What a response depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Head,
    Connect,
    Other,
}

#[derive(Debug, Default)]
pub(super) struct Http {
    client: Messages,
    server: Messages,
    started: Timestamp,
    asked: VecDeque<Asked>,
}

/// The parts of a head that matter.
struct Framing {
    body: Body,
    begins: Option<(Kind, Asked)>,
    /// 1xx: another head follows.
    is_interim: bool,
}

impl Http {
    /// Bytes of incomplete heads.
    pub(super) fn held(&self) -> usize {
        self.client.head.len() + self.server.head.len()
    }

    /// Whether the present response has no other end than that of the connection.
    pub(super) fn ends_with_connection(&self) -> bool {
        self.server.body == Body::UntilClose
    }

    pub(super) fn feed(
        &mut self,
        mut chunk: Chunk<'_>,
        mut context: Context<'_, '_>,
    ) -> Result<(), Trouble> {
        while !chunk.is_empty() {
            match context.side {
                Side::Client => self.request(&mut chunk, &mut context)?,
                Side::Server => self.response(&mut chunk, &mut context)?,
            }
        }
        Ok(())
    }

    fn request(
        &mut self,
        chunk: &mut Chunk<'_>,
        context: &mut Context<'_, '_>,
    ) -> Result<(), Trouble> {
        if self.client.is_between() {
            self.started = context.at;
        }
        if self.client.body != Body::Head {
            return self.client.skip(chunk).map(drop);
        }
        let Some(framing) = self.client.head(chunk, context.sink.budget, request_head)? else {
            return Ok(());
        };
        self.client.body = framing.body;
        if let Some((kind, asked)) = framing.begins {
            context.begin(self.started, kind)?;
            self.asked.push_back(asked);
        }
        Ok(())
    }

    fn response(
        &mut self,
        chunk: &mut Chunk<'_>,
        context: &mut Context<'_, '_>,
    ) -> Result<(), Trouble> {
        context.responds();
        if self.server.body != Body::Head {
            if self.server.skip(chunk)? {
                self.response_ends(context);
            }
            return Ok(());
        }
        let asked = self.asked.front().copied().unwrap_or(Asked::Other);
        let head = |head: &[u8]| response_head(head, asked);
        let Some(framing) = self.server.head(chunk, context.sink.budget, head)? else {
            return Ok(());
        };
        self.server.body = framing.body;
        if framing.body == Body::Head && !framing.is_interim {
            self.response_ends(context);
        }
        Ok(())
    }

    fn response_ends(&mut self, context: &mut Context<'_, '_>) {
        self.asked.pop_front();
        context.end();
    }
}

type Head = Result<Option<(usize, Framing)>, Trouble>;

impl Messages {
    fn is_between(&self) -> bool {
        self.body == Body::Head && self.head.is_empty()
    }

    /// Takes the bytes of a head. Returns `None` if more are needed.
    fn head(
        &mut self,
        chunk: &mut Chunk<'_>,
        budget: &mut Budget,
        parse: impl Fn(&[u8]) -> Head,
    ) -> Result<Option<Framing>, Trouble> {
        let Chunk::Bytes(bytes) = *chunk else {
            return Err(Trouble::Lost);
        };
        let before = self.head.len();
        if before == 0
            && let Some((length, framing)) = parse(bytes)?
        {
            chunk.take(length as u64);
            return Ok(Some(framing));
        }
        if before + bytes.len() > LONGEST_HEAD || !budget.take_bytes(bytes.len()) {
            return Err(Trouble::Lost);
        }
        self.head.extend_from_slice(bytes);
        // Parsing begins at the front, so it waits for the end.
        let fresh = &self.head[before.saturating_sub(END_OF_HEAD - 1)..];
        let is_over = before > 0 && has_empty_line(fresh);
        let found = if is_over { parse(&self.head)? } else { None };
        let Some((length, framing)) = found else {
            chunk.take(u64::MAX);
            return Ok(None);
        };
        chunk.take(length.saturating_sub(before) as u64);
        budget.give_bytes(self.head.len());
        self.head = Vec::new();
        Ok(Some(framing))
    }

    /// Takes bytes of the body. Returns whether it is complete.
    fn skip(&mut self, chunk: &mut Chunk<'_>) -> Result<bool, Trouble> {
        match self.body {
            Body::Head => return Ok(true),
            Body::UntilClose => {
                chunk.take(u64::MAX);
            }
            Body::Length(left) => {
                let left = left - chunk.take(left).len();
                self.body = if left == 0 {
                    Body::Head
                } else {
                    Body::Length(left)
                };
            }
            Body::Part(left) => {
                let left = left - chunk.take(left).len();
                self.body = if left == 0 {
                    Body::size()
                } else {
                    Body::Part(left)
                };
            }
            Body::Size { .. } | Body::Trailer { .. } => {
                let Chunk::Bytes([byte]) = chunk.take(1) else {
                    return Err(Trouble::Lost);
                };
                self.body = self.body.after(*byte)?;
            }
        }
        Ok(self.body == Body::Head)
    }
}

impl Body {
    fn size() -> Self {
        Self::Size {
            size: 0,
            has_extension: false,
        }
    }

    fn after(self, byte: u8) -> Result<Self, Trouble> {
        match (self, byte) {
            (Self::Size { size: 0, .. }, b'\n') => Ok(Self::Trailer {
                line_is_empty: true,
            }),
            (Self::Size { size, .. }, b'\n') => {
                Ok(Self::Part(size.checked_add(2).ok_or(Trouble::Lost)?))
            }
            (Self::Size { size, .. }, b';' | b' ' | b'\t' | b'\r') => Ok(Self::Size {
                size,
                has_extension: true,
            }),
            (
                Self::Size {
                    has_extension: true,
                    ..
                },
                _,
            ) => Ok(self),
            (Self::Size { size, .. }, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(Trouble::Lost)?;
                let size = size.checked_mul(16).ok_or(Trouble::Lost)? + u64::from(digit);
                Ok(Self::Size {
                    size,
                    has_extension: false,
                })
            }
            (
                Self::Trailer {
                    line_is_empty: true,
                },
                b'\n',
            ) => Ok(Self::Head),
            (Self::Trailer { .. }, b'\n') => Ok(Self::Trailer {
                line_is_empty: true,
            }),
            (Self::Trailer { line_is_empty }, b'\r') => Ok(Self::Trailer { line_is_empty }),
            (Self::Trailer { .. }, _) => Ok(Self::Trailer {
                line_is_empty: false,
            }),
            (Self::Head | Self::Length(_) | Self::Part(_) | Self::UntilClose, _) => Ok(self),
        }
    }
}

fn has_empty_line(bytes: &[u8]) -> bool {
    let is_end = |window: &[u8]| window.starts_with(b"\n\n") || window.starts_with(b"\n\r\n");
    (0..bytes.len()).any(|at| bytes[at] == b'\n' && is_end(&bytes[at..]))
}

fn request_head(bytes: &[u8]) -> Head {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let Some(length) = complete(request.parse(bytes))? else {
        return Ok(None);
    };
    let method = request.method.unwrap_or("");
    let asked = match method {
        "HEAD" => Asked::Head,
        "CONNECT" => Asked::Connect,
        _ => Asked::Other,
    };
    let body = body(request.headers)?.unwrap_or(Body::Head);
    let begins = Some((Kind::of_http(method), asked));
    Ok(Some((
        length,
        Framing {
            body,
            begins,
            is_interim: false,
        },
    )))
}

fn response_head(bytes: &[u8], asked: Asked) -> Head {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let Some(length) = complete(response.parse(bytes))? else {
        return Ok(None);
    };
    let code = response.code.unwrap_or(0);
    if code == 101 || (asked == Asked::Connect && (200..300).contains(&code)) {
        return Err(Trouble::Opaque);
    }
    let is_interim = (100..200).contains(&code);
    let has_no_body = is_interim || code == 204 || code == 304 || asked == Asked::Head;
    let body = if has_no_body {
        Body::Head
    } else {
        body(response.headers)?.unwrap_or(Body::UntilClose)
    };
    Ok(Some((
        length,
        Framing {
            body,
            begins: None,
            is_interim,
        },
    )))
}

fn complete(status: httparse::Result<usize>) -> Result<Option<usize>, Trouble> {
    match status {
        Ok(httparse::Status::Complete(length)) => Ok(Some(length)),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(_) => Err(Trouble::Lost),
    }
}

/// The body that the headers announce; chunked wins over a length.
fn body(headers: &[httparse::Header<'_>]) -> Result<Option<Body>, Trouble> {
    let named = |name: &str| {
        headers
            .iter()
            .rfind(|header| header.name.eq_ignore_ascii_case(name))
    };
    if let Some(coding) = named("Transfer-Encoding") {
        let last = coding
            .value
            .rsplit(|byte| *byte == b',')
            .next()
            .unwrap_or_default();
        if last.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Ok(Some(Body::size()));
        }
    }
    let Some(length) = named("Content-Length") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(length.value)
        .ok()
        .and_then(|text| text.trim().parse().ok());
    match text.ok_or(Trouble::Lost)? {
        0 => Ok(Some(Body::Head)),
        length => Ok(Some(Body::Length(length))),
    }
}
