//! The document model: what a report says, before anybody decides how it looks.
//!
//! Every report of Saiga becomes a [`Document`]; the renderers know nothing else. Texts
//! are plain (no markup, any character allowed) and numbers arrive formatted, except where a
//! chart has to place them on an axis.
//!
//! Deliberately absent: colours, widths, HTML, and where the numbers came from.

/// A whole report.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// A few words: what was compared with what.
    pub title: String,
    /// One line under the title: where and when.
    pub subtitle: String,
    /// The answer.
    pub verdict: Verdict,
    /// The few numbers that a hurried reader takes away.
    pub figures: Vec<Figure>,
    /// What a reader of the first screen must not miss further down.
    pub pointers: Vec<Pointer>,
    /// The evidence, most important first.
    pub sections: Vec<Section>,
    /// What it was made of, and by what: a sentence at the end.
    pub origin: String,
}

/// The answer in plain sentences.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// How the answer is to be taken.
    pub tone: Tone,
    /// The one sentence.
    pub lead: String,
    /// What belongs to it.
    pub more: Vec<String>,
}

/// How a reader should take something. Renderers show it by colour and never by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tone {
    /// The judged side did better.
    Better,
    /// The judged side did worse.
    Worse,
    /// Neither.
    Neutral,
    /// Take care.
    Caution,
}

/// One number with its meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it is a number of.
    pub label: String,
    /// The number with its unit.
    pub value: String,
    /// How sure, out of how many.
    pub detail: String,
    /// How to take it.
    pub tone: Tone,
}

/// A sentence on the first screen that leads to a section.
#[derive(Debug, Clone, PartialEq)]
pub struct Pointer {
    /// The sentence.
    pub text: String,
    /// [`Section::id`].
    pub section: String,
}

/// A part of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Unique in the document; lower-case letters and hyphens.
    pub id: &'static str,
    /// Heading.
    pub title: String,
    /// Who needs it.
    pub reach: Reach,
    /// Contents.
    pub blocks: Vec<Block>,
}

/// Who needs a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Everybody: in every rendering.
    Summary,
    /// Readers of the page: left out of the terminal unless asked for.
    Detail,
    /// Whoever checks: like `Detail`, and folded on the page.
    Evidence,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// Points of equal weight.
    List(Vec<String>),
    /// Text to be copied as it is: a command line.
    Code(String),
    /// Names with their values.
    Facts(Vec<(String, String)>),
    /// Warnings.
    Notices(Vec<Notice>),
    /// A table.
    Table(Table),
    /// Ratios with their intervals.
    Forest(Forest),
    /// Values of several series, with the raw runs.
    Bars(Bars),
    /// Values over time, one panel below the other on one time axis.
    Curves(Curves),
    /// How often which values occurred.
    Histogram(Histogram),
    /// Values over something else than time, or on a logarithmic axis.
    Lines(Lines),
}

/// A warning in plain words.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// What was seen.
    pub text: String,
    /// The likely cause.
    pub cause: Option<String>,
    /// What to do.
    pub action: Option<String>,
    /// What it is about.
    pub about: Vec<String>,
}

/// A table with a heading row.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What the table shows; its accessible name.
    pub caption: String,
    /// Columns, left to right.
    pub columns: Vec<Column>,
    /// Rows, each with as many cells as there are columns.
    pub rows: Vec<Row>,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Heading, with the unit where the column has one.
    pub title: String,
    /// Numbers stand to the right.
    pub align: Align,
}

/// Where the text of a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A row of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// A heading for the rows that follow.
    Group(String),
    /// Values.
    Cells(Vec<Cell>),
}

/// One value of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The value.
    pub text: String,
    /// Its spread or another remark.
    pub note: Option<String>,
}

impl Cell {
    /// A value without a remark.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            note: None,
        }
    }
}

/// Ratios with intervals on one logarithmic axis, in groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    /// What the chart shows; its accessible name.
    pub caption: String,
    /// What the ratios are divided by, and what is judged: `kernel`, `saiga`.
    pub sides: [String; 2],
    /// Unit of the two values behind each ratio.
    pub unit: String,
    /// What a ratio below 1 and above 1 means, in words, with its tone.
    pub ends: [(String, Tone); 2],
    /// Groups, top to bottom.
    pub groups: Vec<ForestGroup>,
}

/// Some ratios that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestGroup {
    /// Heading.
    pub title: String,
    /// What the rows have in common, in a sentence.
    pub note: String,
    /// Rows, top to bottom.
    pub rows: Vec<ForestRow>,
}

/// One ratio.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestRow {
    /// What was compared.
    pub label: String,
    /// A remark to the label.
    pub note: Option<String>,
    /// The two values behind the ratio, formatted, the reference first.
    pub values: [String; 2],
    /// The ratio; positive, or it is not drawn.
    pub ratio: f64,
    /// Its interval, when one is known.
    pub interval: Option<[f64; 2]>,
    /// How many pairs it comes from.
    pub pairs: u32,
    /// The conclusion in words.
    pub verdict: String,
    /// The same as a tone.
    pub tone: Tone,
}

/// Bars from zero with the raw runs as dots: one panel per subject, one scale per panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// What the chart shows; its accessible name.
    pub caption: String,
    /// Unit of every value.
    pub unit: String,
    /// What series, values and dots are.
    pub words: BarWords,
    /// Names of the series; a bar refers to one by its index.
    pub series: Vec<String>,
    /// Panels in reading order.
    pub panels: Vec<BarPanel>,
}

/// What the parts of a chart of bars are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BarWords {
    /// One series: `arm`.
    pub series: &'static str,
    /// Where a bar ends: `median`.
    pub value: &'static str,
    /// Several dots: `runs`.
    pub dots: &'static str,
}

/// Arms, the medians of their runs, and the runs.
pub const RUNS: BarWords = BarWords {
    series: "arm",
    value: "median",
    dots: "runs",
};

/// Bars that share a scale.
#[derive(Debug, Clone, PartialEq)]
pub struct BarPanel {
    /// Heading.
    pub title: String,
    /// Groups, top to bottom.
    pub groups: Vec<BarGroup>,
}

/// Bars next to each other.
#[derive(Debug, Clone, PartialEq)]
pub struct BarGroup {
    /// What the bars have in common.
    pub label: String,
    /// Bars, top to bottom.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Index into [`Bars::series`].
    pub series: usize,
    /// Where the bar ends: the median.
    pub value: f64,
    /// The same, formatted.
    pub text: String,
    /// The raw runs.
    pub dots: Vec<f64>,
}

/// Values over time: panels that share a time axis, so that one can look from one to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    /// What the chart shows; its accessible name.
    pub caption: String,
    /// Names of the series; a curve refers to one by its index.
    pub series: Vec<String>,
    /// Seconds at the right end of the axis.
    pub end_s: f64,
    /// Panels, top to bottom.
    pub panels: Vec<CurvePanel>,
    /// What happened when.
    pub marks: Vec<CurveMark>,
}

/// Curves that share a scale from zero.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvePanel {
    /// What is drawn, with its unit.
    pub title: String,
    /// One for each series that has it.
    pub curves: Vec<Curve>,
}

/// One value over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Index into [`Curves::series`].
    pub series: usize,
    /// In the order of time.
    pub points: Vec<CurvePoint>,
    /// The mean of all, formatted.
    pub mean: String,
}

/// A stretch of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Its middle, in seconds.
    pub at_s: f64,
    /// Mean, lowest and highest value; `None` where nothing is known: a gap.
    pub values: Option<[f64; 3]>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveMark {
    /// From here.
    pub from_s: f64,
    /// To there; the same for a moment.
    pub to_s: f64,
    /// What it is.
    pub label: String,
    /// How to take it.
    pub tone: Tone,
}

/// How often which values occurred, by series.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// What the chart shows; its accessible name.
    pub caption: String,
    /// Names of the series.
    pub series: Vec<String>,
    /// Panels in reading order.
    pub panels: Vec<HistogramPanel>,
}

/// One distribution of each series, on one axis.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramPanel {
    /// Heading.
    pub title: String,
    /// The value at the right end of the axis, formatted with its unit; the left end is zero.
    pub end: String,
    /// Shares of each series by bin, from 0 to 1; the last bin holds all that is longer.
    pub shares: Vec<Vec<f64>>,
}

/// Lines on one axis across, each panel with a scale from zero upwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    /// What the chart shows; its accessible name.
    pub caption: String,
    /// Names of the series; a line refers to one by its index.
    pub series: Vec<String>,
    /// The axis across.
    pub axis: LineAxis,
    /// Panels, top to bottom.
    pub panels: Vec<LinePanel>,
}

/// An axis across.
#[derive(Debug, Clone, PartialEq)]
pub struct LineAxis {
    /// What is on it, with its unit.
    pub title: String,
    /// Its left and right end; both above zero where it is logarithmic.
    pub ends: [f64; 2],
    /// Whether equal ratios are equally far apart.
    pub is_logarithmic: bool,
    /// Places on it, formatted.
    pub ticks: Vec<(f64, String)>,
}

/// Lines that share a scale from zero.
#[derive(Debug, Clone, PartialEq)]
pub struct LinePanel {
    /// What is drawn, with its unit.
    pub title: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Index into [`Lines::series`].
    pub series: usize,
    /// Across and up, from left to right.
    pub points: Vec<[f64; 2]>,
    /// What it says, in a few words: all that a terminal shows of it.
    pub text: String,
}
