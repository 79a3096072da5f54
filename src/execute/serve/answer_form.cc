#include "execute/serve/answer_form.h"

#include <algorithm>
#include <optional>

namespace systole {
namespace {

constexpr std::size_t kMostChoices = 1000;

Error wrong(std::string_view field, std::string_view what) {
  return key_error(ErrorKind::invalid, std::string(field), "{}", what);
}

Result<AnswerForm> regex_of(const char* field, const Node& value) {
  const std::string regex = TRY(Fields::named(field, value.as_string()));
  return AnswerForm{.kind = AnswerForm::Kind::regex, .field = field, .regex = regex};
}

// vLLM takes a schema also as its text.
Result<AnswerForm> schema_of(const char* field, const Node& value) {
  if (value.kind() != NodeKind::string)
    return AnswerForm{.kind = AnswerForm::Kind::schema, .field = field, .schema = value};
  const Node schema = TRY(Fields::named(field, parse_json(value.text(), "schema", {.depth = 64})));
  return AnswerForm{.kind = AnswerForm::Kind::schema, .field = field, .schema = schema};
}

Result<AnswerForm> choice_of(const char* field, const Node& value) {
  if (!value.is_sequence() || value.items().empty()) return wrong(field, "no list of texts");
  if (value.items().size() > kMostChoices)
    return key_error(ErrorKind::invalid, field, "{} choices, at most {} may be given", value.items().size(),
                     kMostChoices);
  AnswerForm form{.kind = AnswerForm::Kind::choice, .field = field};
  for (const Node& item : value.items()) form.choices.push_back(TRY(Fields::named(field, item.as_string())));
  if (std::ranges::find(form.choices, "") != form.choices.end()) return wrong(field, "an empty choice");
  return form;
}

Result<AnswerForm> response_format(const Node& format) {
  static constexpr const char* kField = "response_format";
  const Node* type = format.find("type");
  if (type == nullptr || type->kind() != NodeKind::string) return wrong(kField, "it has no type");
  Fields fields(format);
  fields.find("type");
  AnswerForm form{.field = kField};
  if (type->text() == "json_schema") {
    const Node* about = fields.find("json_schema");
    if (about == nullptr || !about->is_map()) return wrong(kField, "json_schema is missing or no map");
    const Node* schema = about->find("schema");
    if (schema == nullptr) return wrong(kField, "json_schema has no schema");
    form.kind = AnswerForm::Kind::schema;
    form.schema = *schema;
  } else if (type->text() == "json_object") {
    form.kind = AnswerForm::Kind::object;
  } else if (type->text() != "text") {
    return key_error(ErrorKind::unsupported, kField, "the type '{}' is not supported", type->text())
        .hinted("text, json_object and json_schema are");
  }
  if (const Status rest = fields.nothing_else(); !rest.ok())
    return wrong(kField, fmt::format("unknown field '{}'", rest.error().key));
  return form;
}

Result<AnswerForm> structured_outputs(const Node& asked) {
  static constexpr const char* kField = "structured_outputs";
  if (!asked.is_map()) return wrong(kField, "it is no map");
  Fields fields(asked);
  std::vector<AnswerForm> forms;
  if (const Node* value = fields.find("json")) forms.push_back(TRY(schema_of(kField, *value)));
  if (const Node* value = fields.find("regex")) forms.push_back(TRY(regex_of(kField, *value)));
  if (const Node* value = fields.find("choice")) forms.push_back(TRY(choice_of(kField, *value)));
  if (const Node* value = fields.find("json_object"); value != nullptr && *value == Node(true))
    forms.push_back({.kind = AnswerForm::Kind::object, .field = kField});
  if (const Status rest = fields.nothing_else(); !rest.ok())
    return key_error(ErrorKind::unsupported, kField, "'{}' is not supported", rest.error().key)
        .hinted("json, regex, choice and json_object are");
  if (forms.size() != 1) return wrong(kField, "it has none, or more than one, of json, regex, choice and json_object");
  return std::move(forms[0]);
}

Result<grammar::Grammar> compiled(const AnswerForm& form) {
  switch (form.kind) {
    case AnswerForm::Kind::text:
    case AnswerForm::Kind::object: return grammar::Grammar::of_object();
    case AnswerForm::Kind::schema: return grammar::Grammar::of_schema(form.schema);
    case AnswerForm::Kind::regex: return grammar::Grammar::of_regex(form.regex);
    case AnswerForm::Kind::choice: break;
  }
  grammar::Grammar::Calls calls;
  for (const std::string& choice : form.choices) calls.choices.push_back({{.text = choice}});
  return grammar::Grammar::of_calls(calls);
}

}  // namespace

Result<AnswerForm> read_answer_form(Fields& fields) {
  AnswerForm form;
  const auto take = [&](AnswerForm next) -> Status {
    if (next.kind == AnswerForm::Kind::text) return {};
    if (form.kind != AnswerForm::Kind::text)
      return wrong(next.field, fmt::format("the answer has a form already, of {}", form.field));
    form = std::move(next);
    return {};
  };
  if (const Node* format = fields.find("response_format")) TRY(take(TRY(response_format(*format))));
  if (const Node* asked = fields.find("structured_outputs")) TRY(take(TRY(structured_outputs(*asked))));
  if (const Node* schema = fields.find("guided_json")) TRY(take(TRY(schema_of("guided_json", *schema))));
  if (const Node* regex = fields.find("guided_regex")) TRY(take(TRY(regex_of("guided_regex", *regex))));
  if (const Node* choice = fields.find("guided_choice")) TRY(take(TRY(choice_of("guided_choice", *choice))));
  return form;
}

Result<grammar::Grammar> grammar_of(const AnswerForm& form) { return Fields::named(form.field, compiled(form)); }

AnswerGrammars::AnswerGrammars(const Tokenizer& tokenizer, const std::vector<SpecialToken>& spelled) {
  std::vector<std::string> spellings;
  for (std::int32_t token = 0; token < tokenizer.vocabulary(); ++token)
    spellings.emplace_back(tokenizer.bytes_of(token));
  for (const SpecialToken& special : spelled) spellings[static_cast<std::size_t>(special.token)] = special.name;
  trie_ = std::make_shared<const grammar::TokenTrie>(std::move(spellings));
}

AnswerGrammars::Masks AnswerGrammars::find(const std::string& key) {
  const auto found = std::ranges::find(kept_, key, &std::pair<std::string, Masks>::first);
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return kept_.front().second;
}

AnswerGrammars::Masks AnswerGrammars::keep(const std::string& key, grammar::Grammar grammar) {
  kept_.emplace_front(key, std::make_shared<grammar::TokenMasks>(std::move(grammar), trie_));
  if (kept_.size() > kMostKept) kept_.pop_back();
  return kept_.front().second;
}

Result<std::shared_ptr<grammar::TokenMasks>> AnswerGrammars::masks_of(const AnswerForm& form) {
  std::string key = fmt::format("{} {} {}", static_cast<int>(form.kind), to_json(form.schema), form.regex);
  for (const std::string& choice : form.choices) key += to_json(Node(choice));
  return masks(key, [&] { return grammar_of(form); });
}

}  // namespace systole
