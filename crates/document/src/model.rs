//! The document model: the content of a report, independent of its layout.
//!
//! Every report of Saiga is built as a [`Document`], the only input of the renderers. Texts are
//! plain (no markup, any character allowed). Numbers are formatted, except those that a chart has
//! to place on an axis.
//!
//! Deliberately absent: colours, widths, HTML, and the source of the numbers.

/// A complete report, independent of its output format.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// A few words, such as the two sides of a comparison.
    pub title: String,
    /// One line under the title, such as the host and the start time.
    pub subtitle: String,
    pub verdict: Verdict,
    /// The few numbers that a reader without time needs.
    pub figures: Vec<Figure>,
    /// Links from the first screen to sections that a reader must not miss.
    pub pointers: Vec<Pointer>,
    /// The evidence, most important section first.
    pub sections: Vec<Section>,
    /// The last sentence: the command that made the report, and its input.
    pub origin: String,
}

/// The answer of a report, in sentences.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub tone: Tone,
    pub lead: String,
    /// Further sentences, shown below the main sentence.
    pub more: Vec<String>,
}

/// Rating of a statement. Renderers show it as a colour, and never as a colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tone {
    /// The judged side did better.
    Better,
    /// The judged side did worse.
    Worse,
    /// The statement rates neither side.
    Neutral,
    /// The reader should check this statement before relying on it.
    Caution,
}

/// A key figure of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub label: String,
    /// The number with its unit.
    pub value: String,
    /// A remark on certainty, such as the number of cells in which a gain was shown.
    pub detail: String,
    pub tone: Tone,
}

/// A sentence on the first screen that links to a section.
#[derive(Debug, Clone, PartialEq)]
pub struct Pointer {
    pub text: String,
    /// The [`Section::id`] of the target.
    pub section: String,
}

/// A part of a report with its own heading.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Unique within the document; lower-case letters and hyphens.
    pub id: &'static str,
    pub title: String,
    pub visibility: Visibility,
    pub blocks: Vec<Block>,
}

/// How early a reader needs a section or a group of ratios, the earliest first. A text ends at the
/// level that [`Style::shown`](crate::text::Style) names; the HTML page has every level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// Part of the answer, even in a few lines of text.
    Answer,
    /// What a careful reader wants to see beside the answer.
    Summary,
    Detail,
    /// Folded on the HTML page.
    Evidence,
}

/// One piece of content of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// One paragraph of prose.
    Text(String),
    /// List items of equal importance.
    List(Vec<String>),
    /// Text to copy verbatim, such as a command line.
    Code(String),
    /// Names, each with a value.
    Facts(Vec<(String, String)>),
    Notices(Vec<Notice>),
    Table(Table),
    Forest(Forest),
    Bars(Bars),
    Curves(Curves),
    Histogram(Histogram),
    Lines(Lines),
    Picture(Picture),
}

/// A warning: an observation, its likely cause, and advice.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    pub text: String,
    pub cause: Option<String>,
    /// Advice to the reader.
    pub action: Option<String>,
    /// Names of the cells, arms or runs that the warning concerns.
    pub about: Vec<String>,
}

/// A table with a heading row.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// A phrase for the content of the table; also its accessible name.
    pub caption: String,
    pub columns: Vec<Column>,
    /// Rows with as many cells as there are columns.
    pub rows: Vec<Row>,
}

/// Heading and alignment of one column of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Heading, with the unit if the column has one.
    pub title: String,
    pub align: Align,
}

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Used for words.
    Left,
    /// Used for numbers, whose digits then line up.
    Right,
}

/// A row of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// A heading for the rows that follow.
    Group(String),
    Cells(Vec<Cell>),
}

/// One value of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub text: String,
    /// A remark on the value, such as its spread.
    pub note: Option<String>,
    /// How dark a page shows the cell, between 0 and 1: the table is then a heat map.
    pub shade: Option<f64>,
}

impl Cell {
    /// A value without a remark.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            note: None,
            shade: None,
        }
    }

    /// Adds a remark.
    #[must_use]
    pub fn with_note(mut self, note: Option<String>) -> Self {
        self.note = note;
        self
    }

    /// Shades the cell of a heat map.
    #[must_use]
    pub fn with_shade(mut self, shade: f64) -> Self {
        self.shade = Some(shade);
        self
    }
}

/// A forest plot: ratios with their intervals on one logarithmic axis, in groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    /// A phrase for the content of the chart; also its accessible name.
    pub caption: String,
    /// Names of the reference and of the judged side: `kernel`, `saiga`.
    pub sides: [String; 2],
    /// Unit of the two values behind each ratio.
    pub unit: String,
    /// Labels for ratios below 1 and above 1, with their tones.
    pub ends: [(String, Tone); 2],
    /// Groups from top to bottom.
    pub groups: Vec<ForestGroup>,
}

/// A group of ratios of a [`Forest`] with a heading.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestGroup {
    pub title: String,
    /// A sentence about the property that the rows share.
    pub note: String,
    pub visibility: Visibility,
    /// Rows from top to bottom.
    pub rows: Vec<ForestRow>,
}

/// One ratio of a [`Forest`].
#[derive(Debug, Clone, PartialEq)]
pub struct ForestRow {
    pub label: String,
    /// A remark on the label.
    pub note: Option<String>,
    /// The two values behind the ratio, formatted, the reference first.
    pub values: [String; 2],
    /// The ratio. A ratio that is not positive is not drawn.
    pub ratio: f64,
    /// Low and high end of the 95 % interval; `None` if too few pairs ran.
    pub interval: Option<[f64; 2]>,
    /// Number of pairs behind the ratio.
    pub pairs: u32,
    /// The conclusion in words.
    pub verdict: String,
    /// The tone of `verdict`.
    pub tone: Tone,
}

/// Horizontal bars that start at zero, with the raw values as dots. Each panel has its own scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// A phrase for the content of the chart; also its accessible name.
    pub caption: String,
    /// Unit of all values.
    pub unit: String,
    pub labels: BarLabels,
    /// Names of the series; a bar refers to its series by index.
    pub series: Vec<String>,
    /// Panels in reading order.
    pub panels: Vec<BarPanel>,
}

/// The words for the parts of a [`Bars`] chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BarLabels {
    /// Word for one series: `arm`.
    pub series: &'static str,
    /// Word for the value at the end of a bar: `median`.
    pub value: &'static str,
    /// Word for several dots: `runs`.
    pub dots: &'static str,
}

/// Labels for arms, the medians of their runs, and the runs.
pub const RUN_LABELS: BarLabels = BarLabels {
    series: "arm",
    value: "median",
    dots: "runs",
};

/// Bars that share a scale.
#[derive(Debug, Clone, PartialEq)]
pub struct BarPanel {
    pub title: String,
    /// Groups from top to bottom.
    pub groups: Vec<BarGroup>,
}

/// Adjacent bars with a common label.
#[derive(Debug, Clone, PartialEq)]
pub struct BarGroup {
    pub label: String,
    /// Bars from top to bottom.
    pub bars: Vec<Bar>,
}

/// One bar of a [`Bars`] chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Index into [`Bars::series`].
    pub series: usize,
    /// The value at which the bar ends.
    pub value: f64,
    /// The formatted value, shown beside the bar.
    pub text: String,
    /// Raw values, such as one per run, drawn over the bar.
    pub dots: Vec<f64>,
}

/// Values over time. All panels share one time axis, so that events can be compared across panels.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    /// A phrase for the content of the chart; also its accessible name.
    pub caption: String,
    /// Names of the series; a curve refers to its series by index.
    pub series: Vec<String>,
    /// End of the time axis, in seconds; the axis begins at zero.
    pub end_s: f64,
    /// Panels from top to bottom.
    pub panels: Vec<CurvePanel>,
    /// Events and intervals, such as the measured interval.
    pub marks: Vec<CurveMark>,
}

/// Curves that share a vertical scale from zero.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvePanel {
    /// The quantity with its unit.
    pub title: String,
    /// One curve for each series that has this quantity.
    pub curves: Vec<Curve>,
}

/// One quantity of one series over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Index into [`Curves::series`].
    pub series: usize,
    /// Points in order of time.
    pub points: Vec<CurvePoint>,
    /// The mean over all points, formatted.
    pub mean: String,
}

/// An interval of a curve, reduced to three values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// The middle of the interval, in seconds.
    pub at_s: f64,
    /// Mean, lowest and highest value; `None` is drawn as a gap.
    pub values: Option<[f64; 3]>,
}

/// An event or an interval on the time axis.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveMark {
    pub from_s: f64,
    /// End of the interval; equal to `from_s` for an event.
    pub to_s: f64,
    pub label: String,
    pub tone: Tone,
}

/// Distributions of one quantity, one per series.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// A phrase for the content of the chart; also its accessible name.
    pub caption: String,
    pub series: Vec<String>,
    /// Panels in reading order.
    pub panels: Vec<HistogramPanel>,
}

/// One distribution of each series, on a common axis.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramPanel {
    pub title: String,
    /// The value at the right end of the axis, formatted with its unit; the left end is zero.
    pub end: String,
    /// Shares (0 to 1) by series and bin; the last bin includes all larger values.
    pub shares: Vec<Vec<f64>>,
}

/// Lines over a quantity other than time, or over a logarithmic axis. All panels share this axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    /// A phrase for the content of the chart; also its accessible name.
    pub caption: String,
    /// Names of the series; a line refers to its series by index.
    pub series: Vec<String>,
    pub axis: LineAxis,
    /// Panels from top to bottom.
    pub panels: Vec<LinePanel>,
}

/// The horizontal axis of a [`Lines`] chart.
#[derive(Debug, Clone, PartialEq)]
pub struct LineAxis {
    /// The quantity with its unit.
    pub title: String,
    /// Values at the left and the right end; both are positive if the axis is logarithmic.
    pub ends: [f64; 2],
    pub is_logarithmic: bool,
    /// Positions of the tick marks, each with its text.
    pub ticks: Vec<(f64, String)>,
}

/// Lines that share a vertical scale from zero.
#[derive(Debug, Clone, PartialEq)]
pub struct LinePanel {
    /// The quantity with its unit.
    pub title: String,
    pub lines: Vec<Line>,
}

/// One line of a [`Lines`] chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Index into [`Lines::series`].
    pub series: usize,
    /// Horizontal and vertical coordinates, from left to right.
    pub points: Vec<[f64; 2]>,
    /// A summary in a few words; a terminal shows it instead of the line.
    pub text: String,
}

/// Boxes with small squares, such as NUMA nodes with their CPUs, side by side in frames.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// A phrase for the content of the picture; also its accessible name.
    pub caption: String,
    /// Names of the roles; a square refers to its role by index.
    pub roles: Vec<String>,
    /// Frames from top to bottom.
    pub frames: Vec<Frame>,
}

/// A frame around boxes.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    pub title: String,
    pub boxes: Vec<PictureBox>,
}

/// One box of a [`Picture`].
#[derive(Debug, Clone, PartialEq)]
pub struct PictureBox {
    pub title: String,
    /// Lines below the title.
    pub lines: Vec<String>,
    /// Groups of squares, in reading order.
    pub groups: Vec<Vec<Square>>,
    /// Labels of things that are linked to the box, such as devices.
    pub attached: Vec<String>,
}

/// One square of a [`PictureBox`].
#[derive(Debug, Clone, PartialEq)]
pub struct Square {
    /// Shown when the pointer is on the square.
    pub label: String,
    /// Index into [`Picture::roles`].
    pub role: usize,
    /// A second role, drawn inside the square.
    pub inner: Option<usize>,
}
