//! The tools, as described to models. The fields of a tool are both its input schema and the schema that its arguments are checked against.

use std::sync::Arc;

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// Maximum time that a tool waits for a person, in seconds. Agents cancel a call after a minute.
pub(super) const WAIT_MAX: u64 = 45;

/// The text about the server that every model gets, if its agent forwards it.
pub(super) const INSTRUCTIONS: &str = "\
You can draw on the screens of the person you work for: browser, phone and terminal show your surfaces live. Surfaces cost one short \
call and do not interrupt your work, so use them unasked:\n\
- A task of more than a few minutes or steps: ui_show a dashboard (Progress, Table, Terminal), ui_pin it, and ui_update it after each step.\n\
- Results that are a table, numbers over time, a diff, a tree of files: ui_show a Table, Chart, Diff or FileTree rather than prose or ASCII.\n\
- A question with several fields or choices, or a decision that needs its facts in view: ui_ask with a form rather than a question in \
prose; then ui_wait until it is answered.\n\
- What no component can draw: ui_html with a page of your own.\n\
A surface has a name that you choose. It is a flat list of A2UI components, whose root has the id `root`, and a data model; bind values \
with {\"path\":\"/x\"} and afterwards change only the data with ui_update. If a tool answers with an error, do what it says, or go on \
without drawing: your task comes first.";

/// The kind of a value in a tool's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// A surface's name.
    Surface,
    /// An identifier that the gateway made.
    Id,
    Text,
    Flag,
    /// A number of seconds, up to [`WAIT_MAX`].
    Seconds,
    /// A whole number, not negative.
    Count,
    Object,
    /// An array of strings.
    Texts,
    /// An array of objects that have at least these members, all of them strings.
    Objects(&'static [&'static str]),
}

/// A member of a tool's arguments.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: FieldKind,
    pub(super) is_required: bool,
    about: &'static str,
}

/// A tool.
#[derive(Debug)]
pub(super) struct ToolText {
    pub(super) name: &'static str,
    title: &'static str,
    about: &'static str,
    /// `true` if repeating a call with the same arguments has no further effect.
    is_idempotent: bool,
    pub(super) fields: &'static [Field],
}

const fn needed(name: &'static str, kind: FieldKind, about: &'static str) -> Field {
    Field { name, kind, is_required: true, about }
}

const fn optional(name: &'static str, kind: FieldKind, about: &'static str) -> Field {
    Field { name, kind, is_required: false, about }
}

const NAME: &str = "The surface's name, chosen by you: letters, digits, _ . - (at most 64), for example \"build\".";
const TITLE: &str = "Shown above it; at most 200 characters.";
const DATA: &str = "The data model that components are bound to by {\"path\":\"/..\"} (JSON Pointer).";
const PIN: &str = "Also pin it, as ui_pin does.";
const WAIT: &str = "Seconds to wait for the answer, 0 to 45 (default 45).";
const COMPONENT: FieldKind = FieldKind::Objects(&["id", "component"]);
const COMPONENTS: &str = "\
A2UI v0.9.1 components: a flat list of {\"id\",\"component\",..props}. One has the id \"root\". Parents name their children by id. \
[x] is optional. A value may be {\"path\":\"/x\"} (bound to data) or {\"call\":\"formatString\",\"args\":{\"value\":\"${/n} files\"}}.\n\
Row, Column: children:[ids], [justify], [align]. List: children:[ids] or {componentId,path} (that component for each item of an array; \
paths in it are relative), [direction]. Card: child. Tabs: tabs:[{title,child}]. Modal: trigger, content. Divider: [axis].\n\
Text: text, [variant: h1 h2 h3 h4 h5 caption body]. Markdown: text. Code: code, [language], [startLine]. \
Diff: diff (unified) or old and new, [path]. Terminal: text (ANSI), [rows]. Image: url (data: only), [description]. Icon: name. \
Video, AudioPlayer: url (shown as a link).\n\
Table: columns:[{key,label,[align: start center end],[format: text number bytes percent duration datetime]}], rows:[{..}] or {path}, \
[sort:{key,descending}], [filterable]. \
Chart: kind: bar line scatter sparkline, series:[{label,values:[numbers] or {path}}], [labels:[..] or {path}], [title], [unit]. \
Progress: [value 0..1, absent: unknown], [label], [state: running done failed waiting]. \
FileTree: entries:[{path,[status: added modified deleted renamed same],[note]}] or {path}.\n\
Inputs: value is {\"path\":..}, the current value is in data. TextField: label, value, [variant: shortText longText number obscured]. \
CheckBox: label, value. ChoicePicker: options:[{label,value}], value (an array of strings), [label], \
[variant: mutuallyExclusive multipleSelection]. Slider: value, max, [min], [label]. DateTimeInput: value, [enableDate], [enableTime]. \
All: [checks:[{condition:{call:\"required\",args:{value:{path}}},message}]].\n\
Button: child (id of a Text), action:{\"event\":{\"name\",[context:{k:{path}}]}}, [variant: primary default borderless].";

/// The tools, in the order in which they are listed.
pub(super) const TOOLS: &[ToolText] = &[
    ToolText {
        name: "ui_show",
        title: "Show a surface",
        about: "\
Draw a surface (a panel) that the person sees at once on every screen, or replace the one of that name. Use it unasked whenever a picture \
says more than prose: the dashboard of a long task, a table of results, a chart, a diff, a file tree, a form. One short call; then keep it \
current with ui_update. Result: `shown rev 7`.\n\
Example: {\"surface\":\"build\",\"title\":\"Build\",\"pin\":true,\"components\":[\
{\"id\":\"root\",\"component\":\"Column\",\"children\":[\"bar\",\"tests\"]},\
{\"id\":\"bar\",\"component\":\"Progress\",\"label\":\"Compiling\",\"value\":{\"path\":\"/done\"}},\
{\"id\":\"tests\",\"component\":\"Table\",\"columns\":[{\"key\":\"name\",\"label\":\"Test\"},\
{\"key\":\"ms\",\"label\":\"ms\",\"align\":\"end\"}],\"rows\":{\"path\":\"/tests\"}}],\
\"data\":{\"done\":0.4,\"tests\":[{\"name\":\"parser\",\"ms\":12}]}}\n\
Components ([x] optional; `components` says more): Row, Column, List{children} Card{child} Tabs{tabs:[{title,child}]} \
Modal{trigger,content} Divider | Text{text,[variant h1..h5 caption]} Markdown{text} Code{code,[language]} Diff{diff} Terminal{text} \
Image{url} Icon{name} Video{url} AudioPlayer{url} | Table{columns:[{key,label}],rows} \
Chart{kind bar line scatter sparkline,series:[{label,values}],[labels]} Progress{[value 0..1],[label],[state]} \
FileTree{entries:[{path,[status]}]} | Button{child,action} TextField{label,value} CheckBox{label,value} \
ChoicePicker{options:[{label,value}],value} Slider{value,max} DateTimeInput{value}",
        is_idempotent: true,
        fields: &[
            needed("surface", FieldKind::Surface, NAME),
            optional("title", FieldKind::Text, TITLE),
            needed("components", COMPONENT, COMPONENTS),
            optional("data", FieldKind::Object, DATA),
            optional("pin", FieldKind::Flag, PIN),
        ],
    },
    ToolText {
        name: "ui_update",
        title: "Update a surface",
        about: "\
Change a surface that you have shown: its data (the usual case, and the cheapest), some of its components, or its title. Use it after \
each step of a task, so that the person sees how it goes. `data` is a list of changes: `value` sets what is at `path`, `append` adds \
items to the array there (rows of a table, values of a chart), neither removes it. `components` replaces those of the same id and adds \
new ones. Result: `rev 8`; or, only if you gave expect_rev, `stale, now 9`: it has changed meanwhile.\n\
Example: {\"surface\":\"build\",\"data\":[{\"path\":\"/done\",\"value\":0.7},\
{\"path\":\"/tests\",\"append\":[{\"name\":\"lexer\",\"ms\":9}]}]}",
        is_idempotent: false,
        fields: &[
            needed("surface", FieldKind::Surface, NAME),
            optional("components", COMPONENT, "Components to replace or add; as in ui_show."),
            optional(
                "data",
                FieldKind::Objects(&["path"]),
                "Changes of the data, each {\"path\":\"/x\",\"value\":any} or {\"path\":\"/list\",\"append\":[items]}.",
            ),
            optional("title", FieldKind::Text, TITLE),
            optional("expect_rev", FieldKind::Count, "Change it only if it still is at this revision."),
        ],
    },
    ToolText {
        name: "ui_pin",
        title: "Pin a surface",
        about: "\
Pin a surface: it gets a place of its own (a tab; the whole screen of a phone) and stays after this turn and over restarts. Pin the \
dashboard of a long task or whatever the person will look for again; take it down with pinned:false. Result: `pinned rev 8`.\n\
Example: {\"surface\":\"build\"}",
        is_idempotent: true,
        fields: &[
            needed("surface", FieldKind::Surface, NAME),
            optional("pinned", FieldKind::Flag, "false to unpin it (default true)."),
        ],
    },
    ToolText {
        name: "ui_close",
        title: "Close a surface",
        about: "\
Remove a surface that is of no use any more. A session has at most 16. Result: `closed rev 9`.\n\
Example: {\"surface\":\"build\"}",
        is_idempotent: true,
        fields: &[needed("surface", FieldKind::Surface, NAME)],
    },
    ToolText {
        name: "ui_ask",
        title: "Ask with a form",
        about: "\
Ask the person with a form and wait for the answer. Use it rather than a question in prose when there are several fields or choices, or \
a decision needs its facts in view (a diff, a table). Give `components` (the form), or `surface`, a form that you have shown. `submit` \
names the buttons that answer; what you want to know goes into the `context` of their action. The person may be on a phone: keep it \
short. Result: `answered {\"component\":\"ok\",\"event\":\"deploy\",\"context\":{\"env\":[\"staging\"]},\"inputs\":{..}} by Phone`, `declined by \
Phone`, or `waiting q_..: call ui_wait`; then call ui_wait with that id, and do not ask again.\n\
Example: {\"title\":\"Deploy\",\"question\":\"Where shall I deploy?\",\"submit\":[\"ok\",\"no\"],\"components\":[\
{\"id\":\"root\",\"component\":\"Column\",\"children\":[\"env\",\"buttons\"]},\
{\"id\":\"env\",\"component\":\"ChoicePicker\",\"variant\":\"mutuallyExclusive\",\"value\":{\"path\":\"/env\"},\
\"options\":[{\"label\":\"Staging\",\"value\":\"staging\"},{\"label\":\"Production\",\"value\":\"production\"}]},\
{\"id\":\"buttons\",\"component\":\"Row\",\"children\":[\"ok\",\"no\"]},\
{\"id\":\"ok\",\"component\":\"Button\",\"child\":\"okText\",\"variant\":\"primary\",\
\"action\":{\"event\":{\"name\":\"deploy\",\"context\":{\"env\":{\"path\":\"/env\"}}}}},\
{\"id\":\"okText\",\"component\":\"Text\",\"text\":\"Deploy\"},\
{\"id\":\"no\",\"component\":\"Button\",\"child\":\"noText\",\"action\":{\"event\":{\"name\":\"cancel\"}}},\
{\"id\":\"noText\",\"component\":\"Text\",\"text\":\"Not now\"}],\"data\":{\"env\":[\"staging\"]}}",
        is_idempotent: false,
        fields: &[
            optional(
                "surface",
                FieldKind::Surface,
                "A surface that you have shown, with the buttons of `submit`. Instead of `components`.",
            ),
            optional("components", COMPONENT, "The form; as in ui_show. Instead of `surface`."),
            optional("title", FieldKind::Text, "The title of the form in `components`."),
            optional(
                "data",
                FieldKind::Object,
                "The data of the form in `components`: the inputs begin with its values.",
            ),
            needed("submit", FieldKind::Texts, "The ids of the buttons that answer."),
            optional("question", FieldKind::Text, "The question in one line; it is what a notification shows."),
            optional("wait_s", FieldKind::Seconds, WAIT),
        ],
    },
    ToolText {
        name: "ui_wait",
        title: "Wait for an answer",
        about: "\
Go on waiting for the answer to a ui_ask that said `waiting`. People may take minutes: call it again until it says `answered`, or do \
other work first. Result: as that of ui_ask.\n\
Example: {\"ask_id\":\"q_4h2k\",\"wait_s\":45}",
        is_idempotent: true,
        fields: &[
            needed("ask_id", FieldKind::Id, "The id that ui_ask gave: q_.."),
            optional("wait_s", FieldKind::Seconds, WAIT),
        ],
    },
    ToolText {
        name: "ui_html",
        title: "Show a page",
        about: "\
Show a page of your own, for what no component can draw: a diagram, a simulation, an interactive explanation, a mock-up. Prefer ui_show \
where it can draw it: terminals and phones show its components better. The page runs in a sandbox without network: put all styles and \
scripts into it, and pictures as data: URLs. `text` is what it says in plain words, for terminals and exports. Result: `shown rev 7`.\n\
Example: {\"surface\":\"orbit\",\"title\":\"Orbit\",\"height\":320,\"text\":\"A planet on a circle around its star.\",\
\"html\":\"<svg viewBox='0 0 100 100'><circle cx='50' cy='50' r='8'/><circle cx='50' cy='50' r='35' fill='none' stroke='gray'/></svg>\"}",
        is_idempotent: true,
        fields: &[
            needed("surface", FieldKind::Surface, NAME),
            optional("title", FieldKind::Text, TITLE),
            needed("html", FieldKind::Text, "The page, complete in itself."),
            needed("text", FieldKind::Text, "What the page shows, in plain words."),
            optional("actions", FieldKind::Texts, "The names of the events that the page may send to you."),
            optional("height", FieldKind::Count, "Its height in pixels."),
            optional("pin", FieldKind::Flag, PIN),
        ],
    },
];

impl ToolText {
    /// Makes the description of the tool for agents.
    pub(super) fn describe(&self) -> Tool {
        // Without these three annotations, Codex asks for approval of each call.
        let annotations = ToolAnnotations::with_title(self.title)
            .read_only(true)
            .destructive(false)
            .idempotent(self.is_idempotent)
            .open_world(false);
        // Without this, Claude Code hides the tools of other servers behind a search.
        let meta = object(json!({ "anthropic/alwaysLoad": true }));
        let tool = Tool::new(self.name, self.about, Arc::new(self.schema()));
        tool.with_title(self.title).with_annotations(annotations).with_meta(MetaObject(meta))
    }

    /// Makes the input schema. It is flat and simple, since models and agents handle references and combinations badly.
    fn schema(&self) -> JsonObject {
        let fields = self.fields.iter().map(|field| (field.name.to_owned(), Value::Object(field.schema())));
        let required: Vec<&str> =
            self.fields.iter().filter(|field| field.is_required).map(|field| field.name).collect();
        object(json!({
            "type": "object",
            "properties": JsonObject::from_iter(fields),
            "required": required,
            "additionalProperties": false,
        }))
    }
}

impl Field {
    fn schema(&self) -> JsonObject {
        let mut schema = object(match self.kind {
            FieldKind::Surface | FieldKind::Id | FieldKind::Text => json!({ "type": "string" }),
            FieldKind::Flag => json!({ "type": "boolean" }),
            FieldKind::Seconds => json!({ "type": "integer", "minimum": 0, "maximum": WAIT_MAX }),
            FieldKind::Count => json!({ "type": "integer", "minimum": 0 }),
            FieldKind::Object => json!({ "type": "object", "additionalProperties": true }),
            FieldKind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            FieldKind::Objects(members) => {
                let properties = members.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" })));
                let properties = JsonObject::from_iter(properties);
                let items = json!({
                    "type": "object", "properties": properties, "required": members, "additionalProperties": true,
                });
                json!({ "type": "array", "items": items })
            }
        });
        schema.insert("description".into(), self.about.into());
        schema
    }
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Agents truncate longer texts.
    const SHOWN: usize = 2048;

    #[test]
    fn descriptions_fit_and_their_examples_are_valid_arguments() {
        assert!(INSTRUCTIONS.len() <= SHOWN, "{}", INSTRUCTIONS.len());
        for tool in TOOLS {
            assert!(tool.about.len() <= SHOWN, "{}: {}", tool.name, tool.about.len());
            let (_, example) = tool.about.split_once("Example: ").unwrap();
            let example =
                serde_json::Deserializer::from_str(example).into_iter::<JsonObject>().next().unwrap().unwrap();
            let known: Vec<&str> = tool.fields.iter().map(|field| field.name).collect();
            assert!(example.keys().all(|name| known.contains(&name.as_str())), "{}: {example:?}", tool.name);
            super::super::arguments::check(tool, Some(example)).unwrap();
        }
    }

    #[test]
    fn components_of_both_catalogues_are_listed_twice() {
        for name in [
            "Row",
            "Column",
            "List",
            "Card",
            "Tabs",
            "Modal",
            "Divider",
            "Text",
            "Image",
            "Icon",
            "Video",
            "AudioPlayer",
            "Button",
            "TextField",
            "CheckBox",
            "ChoicePicker",
            "Slider",
            "DateTimeInput",
            "Table",
            "Diff",
            "Code",
            "FileTree",
            "Markdown",
            "Chart",
            "Progress",
            "Terminal",
        ] {
            assert!(COMPONENTS.contains(name) && TOOLS[0].about.contains(name), "{name}");
        }
    }

    #[test]
    fn schemas_are_plain() {
        for tool in TOOLS {
            let described = serde_json::to_value(tool.describe()).unwrap();
            let schema = described["inputSchema"].to_string();
            for word in ["$ref", "anyOf", "oneOf", "allOf", "$defs"] {
                assert!(!schema.contains(word), "{}: {word}", tool.name);
            }
            assert_eq!(described["_meta"]["anthropic/alwaysLoad"], true);
            let hints = &described["annotations"];
            assert_eq!((&hints["readOnlyHint"], &hints["destructiveHint"]), (&json!(true), &json!(false)));
            assert_eq!(hints["openWorldHint"], false);
        }
        let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["ui_show", "ui_update", "ui_pin", "ui_close", "ui_ask", "ui_wait", "ui_html"]);
    }
}
