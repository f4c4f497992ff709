//! Renders a document as plain text, for a terminal or a pipe.
//!
//! Prints the sections up to the level [`Style::shown`]. A forest plot becomes a table with ratio,
//! interval and verdict; it drops columns if it is wider than the terminal. Colour carries no
//! information of its own: every verdict is a word.

mod spark;
mod table;

use crate::model::{
    Align, Bars, Block, Curves, Document, Forest, Histogram, Lines, Notice, Picture, Row, Section,
    Tone, Visibility,
};
use crate::number;
use crate::untrusted::printable;
use table::{Grid, GridCell};

/// Maximum width of a paragraph in columns, because longer lines are hard to read.
const WIDEST_PARAGRAPH: usize = 100;

/// Options of the text rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to emit escape sequences for colour and weight, which only a terminal understands.
    pub colour: bool,
    /// Width of the output in columns.
    pub width: usize,
    /// The last level of sections and groups to print. Where it is [`Visibility::Answer`], a list
    /// names what the reader must not miss in the levels that are left out.
    pub shown: Visibility,
}

impl Style {
    /// The style for a pipe or a file: no escape sequences, 120 columns.
    pub fn plain() -> Self {
        Self {
            colour: false,
            width: 120,
            shown: Visibility::Summary,
        }
    }

    /// The style for a terminal of `width` columns, with colour; narrow terminals count as 40.
    pub fn terminal(width: usize) -> Self {
        Self {
            colour: true,
            width: width.max(40),
            shown: Visibility::Summary,
        }
    }
}

/// Renders the document as text that ends with a line feed.
pub fn render(document: &Document, style: Style) -> String {
    let mut page = Page {
        out: String::new(),
        style,
    };
    page.line(&page.bold(&document.title));
    page.line(&page.dim(&document.subtitle));
    page.gap();
    page.paragraph(&document.verdict.lead, Some(document.verdict.tone));
    for sentence in &document.verdict.more {
        page.paragraph(sentence, None);
    }
    page.gap();
    let mut grid = Grid::new(vec![Align::Right, Align::Left, Align::Left]);
    for figure in &document.figures {
        let [value, label, detail] =
            [&figure.value, &figure.label, &figure.detail].map(|text| printable(text));
        grid.row(vec![
            GridCell::toned(&value, figure.tone),
            GridCell::new(&label),
            GridCell::new(&detail),
        ]);
    }
    page.grid(grid, &[&[2]]);
    for section in &document.sections {
        if section.visibility <= style.shown {
            page.section(section);
        }
    }
    if style.shown == Visibility::Answer {
        page.pointers(document);
    }
    page.out
}

struct Page {
    out: String,
    style: Style,
}

impl Page {
    /// Lists the pointers to sections that are not printed.
    fn pointers(&mut self, document: &Document) {
        let is_printed = |id: &str| {
            let mut sections = document.sections.iter();
            sections.any(|one| one.id == id && one.visibility <= self.style.shown)
        };
        let pointers = document.pointers.iter();
        let left_out: Vec<_> = pointers.filter(|one| !is_printed(&one.section)).collect();
        if left_out.is_empty() {
            return;
        }
        self.gap();
        self.line(&self.bold("In the report"));
        for pointer in left_out {
            self.item(&pointer.text, "  - ", None);
        }
    }

    fn section(&mut self, section: &Section) {
        self.gap();
        self.line(&self.bold(&section.title));
        for block in &section.blocks {
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Text(text) => self.paragraph(text, None),
            Block::List(items) => items.iter().for_each(|item| self.item(item, "  - ", None)),
            Block::Code(code) => self.line(&format!("    {}", printable(code))),
            Block::Facts(facts) => self.facts(facts),
            Block::Notices(notices) => notices.iter().for_each(|notice| self.notice(notice)),
            Block::Table(table) => {
                let mut grid = Grid::new(table.columns.iter().map(|one| one.align).collect());
                grid.row(
                    table
                        .columns
                        .iter()
                        .map(|one| GridCell::heading(&one.title))
                        .collect(),
                );
                for row in &table.rows {
                    match row {
                        Row::Group(title) => grid.group(title),
                        Row::Cells(cells) => grid.row(cells.iter().map(plain_cell).collect()),
                    }
                }
                self.gap();
                self.grid(grid, &[]);
            }
            Block::Forest(forest) => self.forest(forest),
            Block::Bars(bars) => self.bars(bars),
            Block::Curves(curves) => self.curves(curves),
            Block::Histogram(histogram) => self.histogram(histogram),
            Block::Lines(lines) => self.lines(lines),
            Block::Picture(picture) => self.picture(picture),
        }
    }

    fn forest(&mut self, forest: &Forest) {
        use Align::{Left, Right};
        self.gap();
        self.line(&self.dim(&format!("{} (values in {})", forest.caption, forest.unit)));
        let [a, b] = &forest.sides;
        let mut grid = Grid::new(vec![Left, Right, Right, Right, Left, Right, Left]);
        let headings = ["", a, b, "ratio", "95 % interval", "pairs", "verdict"];
        grid.row(headings.into_iter().map(GridCell::heading).collect());
        let shown = self.style.shown;
        for group in forest.groups.iter().filter(|one| one.visibility <= shown) {
            grid.group(&group.title);
            for row in &group.rows {
                let [left, right] = &row.values;
                let interval = row
                    .interval
                    .map_or_else(|| "–".to_owned(), number::interval);
                grid.row(vec![
                    GridCell::new(&format!("  {}", row.label)),
                    GridCell::new(left),
                    GridCell::new(right),
                    GridCell::toned(&number::ratio(row.ratio), row.tone),
                    GridCell::new(&interval),
                    GridCell::new(&row.pairs.to_string()),
                    GridCell::toned(&row.verdict, row.tone),
                ]);
            }
        }
        self.grid(grid, &[&[5], &[2, 1]]);
    }

    /// One row for each curve: its mean and a sparkline.
    fn curves(&mut self, curves: &Curves) {
        self.gap();
        self.line(&self.dim(&curves.caption));
        let mut grid = Grid::new(vec![Align::Left, Align::Right, Align::Left]);
        grid.row(
            ["", "mean", "over time"]
                .into_iter()
                .map(GridCell::heading)
                .collect(),
        );
        for panel in &curves.panels {
            grid.group(&panel.title);
            for curve in &panel.curves {
                let name = curves.series.get(curve.series).map_or("", String::as_str);
                grid.row(vec![
                    GridCell::new(&format!("  {name}")),
                    GridCell::new(&curve.mean),
                    GridCell::new(&spark::line(panel, curve)),
                ]);
            }
        }
        self.grid(grid, &[&[2]]);
        for mark in &curves.marks {
            let until = if mark.to_s > mark.from_s {
                format!(" to {:.0} s", mark.to_s)
            } else {
                String::new()
            };
            let text = format!("{}: {:.0} s{until}", mark.label, mark.from_s);
            self.item(&text, "  - ", Some(mark.tone));
        }
    }

    fn histogram(&mut self, histogram: &Histogram) {
        self.gap();
        self.line(&self.dim(&histogram.caption));
        let mut grid = Grid::new(vec![Align::Left, Align::Left]);
        for panel in &histogram.panels {
            grid.group(&format!("{}, from 0 to {}", panel.title, panel.end));
            for (name, shares) in histogram.series.iter().zip(&panel.shares) {
                grid.row(vec![
                    GridCell::new(&format!("  {name}")),
                    GridCell::new(&spark::bins(shares)),
                ]);
            }
        }
        self.grid(grid, &[]);
    }

    /// One row for each line, with the line's summary.
    fn lines(&mut self, lines: &Lines) {
        self.gap();
        self.line(&self.dim(&format!("{}, by {}", lines.caption, lines.axis.title)));
        let mut grid = Grid::new(vec![Align::Left, Align::Left]);
        for panel in &lines.panels {
            grid.group(&panel.title);
            for line in &panel.lines {
                let name = lines.series.get(line.series).map_or("", String::as_str);
                grid.row(vec![
                    GridCell::new(&format!("  {name}")),
                    GridCell::new(&line.text),
                ]);
            }
        }
        self.grid(grid, &[]);
    }

    /// One row for each box: its title and the number of squares of each role.
    fn picture(&mut self, picture: &Picture) {
        self.gap();
        self.line(&self.dim(&picture.caption));
        let columns = picture.roles.iter().map(|_| Align::Right);
        let mut grid = Grid::new(std::iter::once(Align::Left).chain(columns).collect());
        let titles = std::iter::once("").chain(picture.roles.iter().map(String::as_str));
        grid.row(titles.map(GridCell::heading).collect());
        for frame in &picture.frames {
            grid.group(&frame.title);
            for one in &frame.boxes {
                let count = |role: usize| {
                    let squares = one.groups.iter().flatten();
                    squares
                        .filter(|square| square.role == role)
                        .count()
                        .to_string()
                };
                let counts = (0..picture.roles.len()).map(|role| GridCell::new(&count(role)));
                let title = GridCell::new(&format!("  {}", one.title));
                grid.row(std::iter::once(title).chain(counts).collect());
            }
        }
        self.grid(grid, &[]);
    }

    fn bars(&mut self, bars: &Bars) {
        self.gap();
        self.line(&self.dim(&format!("{}, {}", bars.caption, bars.unit)));
        let mut grid = Grid::new(vec![Align::Left, Align::Left, Align::Right, Align::Right]);
        grid.row(
            ["", bars.labels.series, bars.labels.value, bars.labels.dots]
                .into_iter()
                .map(GridCell::heading)
                .collect(),
        );
        for panel in &bars.panels {
            grid.group(&panel.title);
            for (group, bar) in panel
                .groups
                .iter()
                .flat_map(|group| group.bars.iter().map(move |bar| (group, bar)))
            {
                let series = bars.series.get(bar.series).map_or("", String::as_str);
                grid.row(vec![
                    GridCell::new(&format!("  {}", group.label)),
                    GridCell::new(series),
                    GridCell::new(&bar.text),
                    GridCell::new(&bar.dots.len().to_string()),
                ]);
            }
        }
        self.grid(grid, &[]);
    }

    fn notice(&mut self, notice: &Notice) {
        self.item(&notice.text, "  ! ", Some(Tone::Caution));
        if let Some(cause) = &notice.cause {
            self.item(&format!("Likely cause: {cause}"), "    ", None);
        }
        if let Some(action) = &notice.action {
            self.item(&format!("What to do: {action}"), "    ", None);
        }
        if !notice.about.is_empty() {
            self.item(
                &format!("Concerns: {}", notice.about.join("; ")),
                "    ",
                None,
            );
        }
    }

    fn facts(&mut self, facts: &[(String, String)]) {
        self.gap();
        let widest = facts
            .iter()
            .map(|(name, _)| name.chars().count())
            .max()
            .unwrap_or(0);
        for (name, value) in facts {
            let (name, value) = (printable(name), printable(value));
            self.line(&format!("  {name:widest$}  {value}"));
        }
    }

    /// Prints the grid. Drops the columns of `expendable`, one set after the other, while the grid
    /// is wider than the style allows.
    fn grid(&mut self, mut grid: Grid, expendable: &[&[usize]]) {
        for columns in expendable {
            if grid.width() > self.style.width {
                columns.iter().for_each(|column| grid.drop_column(*column));
            }
        }
        grid.render(&mut self.out, self.style.colour);
    }

    fn paragraph(&mut self, text: &str, tone: Option<Tone>) {
        self.item(text, "", tone);
    }

    /// Prints a wrapped text after `bullet`; further lines are indented by the bullet's width.
    fn item(&mut self, text: &str, bullet: &str, tone: Option<Tone>) {
        let indent = " ".repeat(bullet.chars().count());
        let room = self
            .style
            .width
            .min(WIDEST_PARAGRAPH)
            .saturating_sub(indent.len())
            .max(20);
        for (index, line) in wrapped(&printable(text), room).iter().enumerate() {
            let line = tone.map_or_else(|| line.clone(), |tone| self.toned(line, tone));
            let start = if index == 0 { bullet } else { &indent };
            self.line(&format!("{start}{line}"));
        }
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn gap(&mut self) {
        if !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn bold(&self, text: &str) -> String {
        table::painted(&printable(text), "1", self.style.colour)
    }

    fn dim(&self, text: &str) -> String {
        table::painted(&printable(text), "2", self.style.colour)
    }

    fn toned(&self, text: &str, tone: Tone) -> String {
        table::painted(text, table::code(tone), self.style.colour)
    }
}

fn plain_cell(cell: &crate::model::Cell) -> GridCell {
    match &cell.note {
        Some(note) => GridCell::new(&format!("{} ({note})", cell.text)),
        None => GridCell::new(&cell.text),
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
        }
        used += length;
    }
    lines
}
