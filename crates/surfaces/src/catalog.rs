//! The catalogues as one table: components and functions, with the types of their properties and arguments.

/// Identifier of Plexus's own catalogue: the basic one and the components for coding.
pub const PLEXUS_CATALOG: &str = "plexus:catalog/1";
/// Identifier of the basic catalogue of A2UI 0.9.
pub const BASIC_CATALOG: &str = "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json";
/// Plexus's own catalogue as JSON Schema.
pub const PLEXUS_SCHEMA: &str = include_str!("../catalog/plexus.json");

/// The type of a property or of an argument. `Dyn..` is a literal, or a path or a call that results in one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Type {
    Text,
    Number,
    /// A whole number from 0.
    Count,
    Flag,
    OneOf(&'static [&'static str]),
    /// A regular expression.
    Pattern,
    /// An address that a press opens.
    Url,
    DynText,
    DynNumber,
    DynFlag,
    DynTexts,
    DynAny,
    /// Any value.
    Any,
    /// Any object, such as a row.
    Record,
    /// A number, or null for a gap.
    NumberOrGap,
    /// A binding: `{"path": ..}`.
    Bound,
    /// The id of a component.
    Child,
    /// Ids of components, or a template.
    Children,
    Action,
    List(&'static Type, usize, usize),
    Object(&'static [Prop]),
    Either(&'static [Type]),
}

/// A property or an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prop {
    pub(crate) name: &'static str,
    pub(crate) ty: Type,
    pub(crate) needed: bool,
}

/// A component.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) props: &'static [Prop],
}

/// The result type of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReturnType {
    Text,
    Flag,
    Nothing,
}

/// A function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) args: &'static [Prop],
    pub(crate) returns: ReturnType,
    /// Arguments of which at least one is required.
    pub(crate) any_of: &'static [&'static str],
}

const fn needs(name: &'static str, ty: Type) -> Prop {
    Prop { name, ty, needed: true }
}

const fn may(name: &'static str, ty: Type) -> Prop {
    Prop { name, ty, needed: false }
}

/// Maximum number of items of a list of options, tabs, columns or checks.
const SHORT_LIST_MAX: usize = 256;
const ROWS: usize = super::limits::ROWS_MAX;
const NO_LIMIT: usize = usize::MAX;

/// The properties that every component may have.
#[rustfmt::skip]
pub(crate) const COMMON: &[Prop] = &[
    needs("id", Type::Text),
    needs("component", Type::Text),
    may("weight", Type::Number),
    may("accessibility", Type::Object(&[may("label", Type::DynText), may("description", Type::DynText)])),
];

const CHECKS: Prop = may("checks", Type::List(&CHECK, 0, SHORT_LIST_MAX));
const CHECK: Type = Type::Object(&[needs("condition", Type::DynFlag), needs("message", Type::Text)]);
const CHILDREN: Prop = needs("children", Type::Children);
const ALIGN: Prop = may("align", Type::OneOf(&["center", "end", "start", "stretch"]));
#[rustfmt::skip]
const JUSTIFY: Prop = may("justify", Type::OneOf(&["start", "center", "end", "spaceBetween", "spaceAround", "spaceEvenly", "stretch"]));
const TAB: Type = Type::Object(&[needs("title", Type::DynText), needs("child", Type::Child)]);
const OPTION: Type = Type::Object(&[needs("label", Type::DynText), needs("value", Type::Text)]);
const NUMBERS: Type = Type::Either(&[Type::List(&Type::NumberOrGap, 0, ROWS), Type::Bound]);
#[rustfmt::skip]
const COLUMN: Type = Type::Object(&[
    needs("key", Type::Text),
    needs("label", Type::Text),
    may("align", Type::OneOf(&["start", "end", "center"])),
    may("format", Type::OneOf(&["text", "number", "bytes", "percent", "duration", "datetime"])),
]);
#[rustfmt::skip]
const ENTRY: Type = Type::Object(&[
    needs("path", Type::Text),
    may("status", Type::OneOf(&["added", "modified", "deleted", "renamed", "same"])),
    may("note", Type::Text),
]);
#[rustfmt::skip]
const SERIES: Type = Type::Object(&[
    needs("label", Type::DynText),
    needs("values", NUMBERS),
    may("x", Type::Either(&[Type::List(&Type::Number, 0, ROWS), Type::Bound])),
]);
#[rustfmt::skip]
const ICONS: &[&str] = &[
    "accountCircle", "add", "arrowBack", "arrowForward", "attachFile", "calendarToday", "call", "camera", "check", "close", "delete",
    "download", "edit", "event", "error", "fastForward", "favorite", "favoriteOff", "folder", "help", "home", "info", "locationOn",
    "lock", "lockOpen", "mail", "menu", "moreVert", "moreHoriz", "notificationsOff", "notifications", "pause", "payment", "person",
    "phone", "photo", "play", "print", "refresh", "rewind", "search", "send", "settings", "share", "shoppingCart", "skipNext",
    "skipPrevious", "star", "starHalf", "starOff", "stop", "upload", "visibility", "visibilityOff", "volumeDown", "volumeMute",
    "volumeOff", "volumeUp", "warning",
];

/// The components of the basic catalogue.
#[rustfmt::skip] // a property a line
pub(crate) const BASIC: &[Spec] = &[
    Spec { name: "Text", props: &[
        needs("text", Type::DynText),
        may("variant", Type::OneOf(&["h1", "h2", "h3", "h4", "h5", "caption", "body"])),
    ] },
    Spec { name: "Image", props: &[
        needs("url", Type::DynText),
        may("description", Type::DynText),
        may("fit", Type::OneOf(&["contain", "cover", "fill", "none", "scaleDown"])),
        may("variant", Type::OneOf(&["icon", "avatar", "smallFeature", "mediumFeature", "largeFeature", "header"])),
    ] },
    Spec { name: "Icon", props: &[
        needs("name", Type::Either(&[Type::OneOf(ICONS), Type::Bound, Type::Object(&[needs("svgPath", Type::Text)])])),
    ] },
    Spec { name: "Video", props: &[needs("url", Type::DynText)] },
    Spec { name: "AudioPlayer", props: &[needs("url", Type::DynText), may("description", Type::DynText)] },
    Spec { name: "Row", props: &[CHILDREN, JUSTIFY, ALIGN] },
    Spec { name: "Column", props: &[CHILDREN, JUSTIFY, ALIGN] },
    Spec { name: "List", props: &[CHILDREN, may("direction", Type::OneOf(&["vertical", "horizontal"])), ALIGN] },
    Spec { name: "Card", props: &[needs("child", Type::Child)] },
    Spec { name: "Tabs", props: &[needs("tabs", Type::List(&TAB, 1, SHORT_LIST_MAX))] },
    Spec { name: "Modal", props: &[needs("trigger", Type::Child), needs("content", Type::Child)] },
    Spec { name: "Divider", props: &[may("axis", Type::OneOf(&["horizontal", "vertical"]))] },
    Spec { name: "Button", props: &[
        needs("child", Type::Child),
        may("variant", Type::OneOf(&["default", "primary", "borderless"])),
        needs("action", Type::Action),
        CHECKS,
    ] },
    Spec { name: "TextField", props: &[
        needs("label", Type::DynText),
        may("value", Type::DynText),
        may("variant", Type::OneOf(&["longText", "number", "shortText", "obscured"])),
        may("validationRegexp", Type::Pattern),
        CHECKS,
    ] },
    Spec { name: "CheckBox", props: &[needs("label", Type::DynText), needs("value", Type::DynFlag), CHECKS] },
    Spec { name: "ChoicePicker", props: &[
        may("label", Type::DynText),
        may("variant", Type::OneOf(&["multipleSelection", "mutuallyExclusive"])),
        needs("options", Type::List(&OPTION, 0, SHORT_LIST_MAX)),
        needs("value", Type::DynTexts),
        may("displayStyle", Type::OneOf(&["checkbox", "chips"])),
        may("filterable", Type::Flag),
        CHECKS,
    ] },
    Spec { name: "Slider", props: &[
        may("label", Type::DynText),
        may("min", Type::Number),
        needs("max", Type::Number),
        needs("value", Type::DynNumber),
        CHECKS,
    ] },
    Spec { name: "DateTimeInput", props: &[
        needs("value", Type::DynText),
        may("enableDate", Type::Flag),
        may("enableTime", Type::Flag),
        may("min", Type::DynText),
        may("max", Type::DynText),
        may("label", Type::DynText),
        CHECKS,
    ] },
];

/// The components of Plexus's own catalogue that are not in the basic one.
#[rustfmt::skip] // a property a line
pub(crate) const PLEXUS: &[Spec] = &[
    Spec { name: "Table", props: &[
        needs("columns", Type::List(&COLUMN, 1, 64)),
        needs("rows", Type::Either(&[Type::List(&Type::Record, 0, ROWS), Type::Bound])),
        may("sort", Type::Object(&[needs("key", Type::Text), may("descending", Type::Flag)])),
        may("filterable", Type::Flag),
        may("onSelect", Type::Action),
        may("label", Type::DynText),
    ] },
    Spec { name: "Diff", props: &[
        may("diff", Type::DynText),
        may("old", Type::DynText),
        may("new", Type::DynText),
        may("path", Type::DynText),
    ] },
    Spec { name: "Code", props: &[needs("code", Type::DynText), may("language", Type::Text), may("startLine", Type::Count)] },
    Spec { name: "FileTree", props: &[
        needs("entries", Type::Either(&[Type::List(&ENTRY, 0, ROWS), Type::Bound])),
        may("onSelect", Type::Action),
    ] },
    Spec { name: "Markdown", props: &[needs("text", Type::DynText)] },
    Spec { name: "Chart", props: &[
        needs("kind", Type::OneOf(&["bar", "line", "scatter", "sparkline"])),
        needs("series", Type::List(&SERIES, 1, 32)),
        may("labels", Type::Either(&[Type::List(&Type::Text, 0, ROWS), Type::Bound])),
        may("title", Type::DynText),
        may("unit", Type::Text),
        may("min", Type::Number),
        may("max", Type::Number),
    ] },
    Spec { name: "Progress", props: &[
        may("value", Type::DynNumber),
        may("label", Type::DynText),
        may("state", Type::DynText),
    ] },
    Spec { name: "Terminal", props: &[needs("text", Type::DynText), may("rows", Type::Count)] },
    Spec { name: "Html", props: &[
        needs("html", Type::Text),
        needs("text", Type::Text),
        may("actions", Type::List(&Type::Text, 0, SHORT_LIST_MAX)),
        may("height", Type::Number),
    ] },
];

/// The values of `Progress.state`.
pub(crate) const STATES: &[&str] = &["running", "done", "failed", "waiting"];

const TEXT_ARG: Prop = needs("value", Type::DynText);
const VALUES_ARG: Prop = needs("values", Type::List(&Type::DynFlag, 2, NO_LIMIT));
const DECIMALS: Prop = may("decimals", Type::DynNumber);
const GROUPING: Prop = may("grouping", Type::DynFlag);

const fn function(name: &'static str, args: &'static [Prop], returns: ReturnType) -> Function {
    Function { name, args, returns, any_of: &[] }
}

/// The functions of both catalogues.
#[rustfmt::skip] // a function a line
pub(crate) const FUNCTIONS: &[Function] = &[
    function("required", &[needs("value", Type::Any)], ReturnType::Flag),
    function("regex", &[TEXT_ARG, needs("pattern", Type::Pattern)], ReturnType::Flag),
    Function {
        name: "length", returns: ReturnType::Flag, any_of: &["min", "max"],
        args: &[TEXT_ARG, may("min", Type::Count), may("max", Type::Count)],
    },
    Function {
        name: "numeric", returns: ReturnType::Flag, any_of: &["min", "max"],
        args: &[needs("value", Type::DynNumber), may("min", Type::Number), may("max", Type::Number)],
    },
    function("email", &[TEXT_ARG], ReturnType::Flag),
    function("formatString", &[TEXT_ARG], ReturnType::Text),
    function("formatNumber", &[needs("value", Type::DynNumber), DECIMALS, GROUPING], ReturnType::Text),
    function("formatCurrency", &[needs("value", Type::DynNumber), needs("currency", Type::DynText), DECIMALS, GROUPING], ReturnType::Text),
    function("formatDate", &[needs("value", Type::DynAny), needs("format", Type::DynText)], ReturnType::Text),
    function("pluralize", &[
        needs("value", Type::DynNumber), may("zero", Type::DynText), may("one", Type::DynText), may("two", Type::DynText),
        may("few", Type::DynText), may("many", Type::DynText), needs("other", Type::DynText),
    ], ReturnType::Text),
    function("openUrl", &[needs("url", Type::Url)], ReturnType::Nothing),
    function("and", &[VALUES_ARG], ReturnType::Flag),
    function("or", &[VALUES_ARG], ReturnType::Flag),
    function("not", &[needs("value", Type::DynFlag)], ReturnType::Flag),
];

/// The catalogue of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Catalog {
    Plexus,
    Basic,
    /// The catalogue of a later version, in restored state: its components are left unchanged.
    Other,
}

impl Catalog {
    pub(crate) fn from_id(id: &str) -> Self {
        match id {
            PLEXUS_CATALOG => Self::Plexus,
            BASIC_CATALOG => Self::Basic,
            _ => Self::Other,
        }
    }

    /// Iterates over the components.
    pub(crate) fn specs(self) -> impl Iterator<Item = &'static Spec> {
        let own = if self == Self::Basic { &[][..] } else { PLEXUS };
        BASIC.iter().chain(own)
    }

    pub(crate) fn spec(self, name: &str) -> Option<&'static Spec> {
        self.specs().find(|spec| spec.name == name)
    }
}

/// Returns the function with this name.
pub(crate) fn function_of(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}
