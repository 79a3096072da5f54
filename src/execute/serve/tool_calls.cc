#include "execute/serve/tool_calls.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace systole {
namespace {

constexpr std::string_view kHermes = "<tool_call>", kHermesEnd = "</tool_call>", kMistral = "[TOOL_CALLS]",
                           kPython = "<|python_tag|>";  // which Llama may write before a call
constexpr std::string_view kSpace = " \t\r\n";
constexpr std::size_t kMostTools = 128;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

Error wrong_tool(std::string_view what) { return key_error(ErrorKind::invalid, "tools", "{}", what); }

const std::string& name_of(const Node& tool) { return tool.find("function")->find("name")->text(); }

Status check_tools(const Node& tools) {
  if (tools.items().size() > kMostTools)
    return wrong_tool(fmt::format("{} tools, at most {} may be given", tools.items().size(), kMostTools));
  for (const Node& tool : tools.items()) {
    const Node *type = tool.find("type"), *function = tool.find("function");
    if (type == nullptr || *type != Node("function"))
      return wrong_tool("a tool's type is not \"function\", the only one that is supported");
    const Node* name = function == nullptr ? nullptr : function->find("name");
    if (name == nullptr || name->kind() != NodeKind::string || name->text().empty())
      return wrong_tool("a tool has no function with a name");
    const Node* parameters = function->find("parameters");
    if (parameters != nullptr && !parameters->is_map() && !parameters->is_null())
      return wrong_tool(fmt::format("the parameters of '{}' are no JSON Schema", name->text()));
  }
  return {};
}

// Of its arguments, which are an object in any case.
Node schema_of(const Node& tool) {
  const Node* parameters = tool.find("function")->find("parameters");
  Node schema = parameters == nullptr || parameters->is_null() ? Node::map({{"properties", Node::map()}}) : *parameters;
  const bool is_open = std::ranges::none_of(std::array{"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"},
                                            [&](const char* key) { return schema.find(key) != nullptr; });
  if (is_open) schema.set("type", "object");
  return schema;
}

}  // namespace

const char* name_of(ToolFormat format) {
  switch (format) {
    case ToolFormat::none: return "none";
    case ToolFormat::hermes: return "hermes";
    case ToolFormat::mistral: return "mistral";
    case ToolFormat::llama: return "llama";
  }
  return "?";
}

ToolFormat tool_format_of(std::string_view chat_template) {
  // Qwen3-Coder writes XML within the mark, and later models of Mistral a name and [ARGS] behind it.
  if (contains(chat_template, kHermes) && !contains(chat_template, "<function=")) return ToolFormat::hermes;
  if (contains(chat_template, kMistral) && !contains(chat_template, "[ARGS]")) return ToolFormat::mistral;
  if (contains(chat_template, "ipython") && contains(chat_template, "\"parameters\": ")) return ToolFormat::llama;
  return ToolFormat::none;
}

std::vector<SpecialToken> marks_of(ToolFormat format, const Tokenizer& tokenizer) {
  std::vector<std::string_view> names;
  if (format == ToolFormat::hermes) names = {kHermes, kHermesEnd};
  if (format == ToolFormat::mistral) names = {kMistral};
  if (format == ToolFormat::llama) names = {kPython};
  std::vector<SpecialToken> marks;
  for (const SpecialToken& special : tokenizer.specials()) {
    if (std::ranges::find(names, special.name) != names.end()) marks.push_back(special);
  }
  return marks;
}

Result<ToolUse> read_tool_use(Fields& fields) {
  ToolUse use;
  if (const Node* tools = fields.find("tools")) {
    if (!tools->is_sequence()) return wrong_tool("it is no list");
    use.tools = *tools;
  }
  const auto wrong = [](std::string_view what) { return key_error(ErrorKind::invalid, "tool_choice", "{}", what); };
  const bool has_tools = !use.tools.items().empty();
  const Node* choice = fields.find("tool_choice");
  use.choice = has_tools ? ToolUse::Choice::automatic : ToolUse::Choice::none;
  use.parallel = TRY(fields.truth("parallel_tool_calls", true));
  if (choice != nullptr && choice->is_map()) {
    const Node* function = choice->find("function");
    const Node* name = function == nullptr ? nullptr : function->find("name");
    if (name == nullptr || name->kind() != NodeKind::string) return wrong("it has no function with a name");
    use.choice = ToolUse::Choice::named;
    use.name = name->text();
  } else if (choice != nullptr && *choice == Node("required")) {
    use.choice = ToolUse::Choice::required;
  } else if (choice != nullptr && *choice == Node("none")) {
    use.choice = ToolUse::Choice::none;
  } else if (choice != nullptr && *choice != Node("auto")) {
    return wrong("it is none of \"auto\", \"none\", \"required\" and a function");
  }
  if (use.is_forced() && !has_tools) return wrong("there are no tools");
  if (use.choice == ToolUse::Choice::none) return use;
  TRY(check_tools(use.tools));
  if (use.choice == ToolUse::Choice::named &&
      std::ranges::none_of(use.tools.items(), [&](const Node& tool) { return name_of(tool) == use.name; }))
    return wrong(fmt::format("no tool has the name '{}'", use.name));
  return use;
}

Result<grammar::Grammar> grammar_of(const ToolUse& use, ToolFormat format) {
  if (format == ToolFormat::none)
    return key_error(ErrorKind::unsupported, "tool_choice",
                     "the model's chat template has no calls that are known here")
        .hinted("leave tool_choice out");
  std::vector<Node> schemas;
  std::vector<std::string> names;
  for (const Node& tool : use.tools.items()) {
    if (use.choice == ToolUse::Choice::named && name_of(tool) != use.name) continue;
    schemas.push_back(schema_of(tool));
    names.push_back(to_json(Node(name_of(tool))));
  }
  grammar::Grammar::Calls calls;
  const char* arguments = format == ToolFormat::llama ? "parameters" : "arguments";
  for (std::size_t i = 0; i < schemas.size(); ++i) {
    const std::string head = fmt::format("{{\"name\": {}, \"{}\": ", names[i], arguments);
    calls.choices.push_back({{.text = head}, {.schema = &schemas[i]}, {.text = "}"}});
  }
  calls.repeats = format != ToolFormat::llama && use.choice == ToolUse::Choice::required && use.parallel;
  if (format == ToolFormat::hermes) {
    calls.before = fmt::format("{}\n", kHermes);
    calls.after = fmt::format("\n{}", kHermesEnd);
    calls.between = calls.after + "\n" + calls.before;
  } else if (format == ToolFormat::mistral) {
    calls.before = fmt::format("{} [", kMistral);
    calls.between = ", ";
    calls.after = "]";
  }
  return Fields::named("tools", grammar::Grammar::of_calls(calls));
}

ToolCallText::ToolCallText(ToolFormat format, const ToolUse& use)
    : format_(format), most_(use.parallel ? std::numeric_limits<std::size_t>::max() : 1) {
  if (format == ToolFormat::none) return;  // tools that are not used may have no names
  for (const Node& tool : use.tools.items()) names_.push_back(name_of(tool));
}

// The bytes of what is held that cannot become part of a call.
std::size_t ToolCallText::certain() const {
  if (format_ == ToolFormat::none) return held_.size();
  if (format_ == ToolFormat::llama) {  // from its first character on, or not at all
    if (begun_) return held_.size();
    const std::string_view text = trimmed(held_);
    const bool may_call = text.empty() || text[0] == '{' || text.starts_with(kPython) || kPython.starts_with(text);
    return may_call ? 0 : held_.size();
  }
  const std::string_view mark = format_ == ToolFormat::hermes ? kHermes : kMistral;
  std::size_t end = std::min(held_.find(mark), held_.size());
  if (end == held_.size()) {  // without the beginning of a mark
    std::size_t begins = std::min(mark.size() - 1, held_.size());
    while (begins > 0 && !held_.ends_with(mark.substr(0, begins))) --begins;
    end -= begins;
  }
  const std::size_t last = std::string_view(held_).substr(0, end).find_last_not_of(kSpace);
  return last == std::string_view::npos ? 0 : last + 1;  // white space before a call is no text
}

std::string ToolCallText::add(std::string_view piece) {
  held_ += piece;
  std::string text = held_.substr(0, certain());
  held_.erase(0, text.size());
  begun_ = begun_ || !text.empty();
  return text;
}

// False: it is no call. A call's name must be a tool's where nothing else tells it from an answer in JSON.
bool ToolCallText::read_one(std::string_view json, std::vector<ToolCall>& calls) const {
  const Result<Node> parsed = parse_json(json, "call", {.depth = 100});
  if (!parsed.ok()) return false;
  const std::span<const Node> items = parsed->is_sequence() ? parsed->items() : std::span(&*parsed, 1);
  if (parsed->is_sequence() != (format_ == ToolFormat::mistral) || items.empty()) return false;
  for (const Node& item : items) {
    const Node *name = item.find("name"), *arguments = item.find("arguments");
    if (arguments == nullptr) arguments = item.find("parameters");
    if (name == nullptr || name->kind() != NodeKind::string) return false;
    if (format_ == ToolFormat::llama &&
        (arguments == nullptr || std::ranges::find(names_, name->text()) == names_.end()))
      return false;
    if (arguments != nullptr && !arguments->is_map()) return false;
    calls.push_back({.name = name->text(), .arguments = arguments == nullptr ? "{}" : to_json(*arguments)});
  }
  return true;
}

bool ToolCallText::read(std::string_view text, Rest& rest) const {
  text = trimmed(text);
  if (format_ == ToolFormat::llama) {
    if (text.starts_with(kPython)) text.remove_prefix(kPython.size());
    return read_one(text, rest.calls);
  }
  if (format_ == ToolFormat::mistral) {
    if (!text.starts_with(kMistral)) return false;
    return read_one(text.substr(kMistral.size()), rest.calls);
  }
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find(kHermes), text.size());
    rest.text += trimmed(text.substr(0, begin));
    text.remove_prefix(begin);
    if (text.empty()) break;
    text.remove_prefix(kHermes.size());
    const std::size_t end = std::min(text.find(kHermesEnd), text.size());  // the last may lack its end
    if (!read_one(trimmed(text.substr(0, end)), rest.calls)) return false;
    text.remove_prefix(std::min(end + kHermesEnd.size(), text.size()));
  }
  return !rest.calls.empty();
}

ToolCallText::Rest ToolCallText::rest() {
  Rest rest;
  if (format_ == ToolFormat::none || !read(held_, rest)) return {std::exchange(held_, {}), {}};
  held_.clear();
  if (rest.calls.size() > most_) rest.calls.resize(most_);
  return rest;
}

}  // namespace systole
