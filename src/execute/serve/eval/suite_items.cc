#include "execute/serve/eval/suite_items.h"

#include <algorithm>
#include <span>

#include "execute/serve/json_lines.h"
#include "ground/base/counted.h"
#include "ground/base/nearest.h"

namespace systole {
namespace {

Result<FieldTemplate> template_at(const Node& map, std::string_view key) { return template_of(*TRY(map.get(key))); }

struct EvalExample {
  Node fields;  // a map
  Where where;
};

Result<std::string> filled(const FieldTemplate& made, const EvalExample& example) {
  return at_place(example.where, made.fill(example.fields));
}

// A file with a JSON object a line; empty lines are skipped.
Result<std::vector<EvalExample>> read_examples(const std::string& path, SuiteFiles& files) {
  const std::string text = TRY(files.text_of(path));
  std::vector<EvalExample> examples;
  for (const TextLine& line : lines_of(text)) {
    if (line.is_blank()) continue;
    Result<Node> fields = object_on(line, path);
    if (!fields.ok()) {
      Error wrong = std::move(fields).error();
      if (wrong.hint.empty()) wrong.hint = R"(each line is one object, such as {"question": "...", "answer": "..."})";
      return wrong;
    }
    examples.push_back({std::move(fields).value(), {path, line.number, 1}});
  }
  return examples;
}

// A list of examples, or the file that has them.
Result<std::vector<EvalExample>> examples_at(const Node& map, SuiteFiles& files) {
  const Node* const data = TRY(map.get("data"));
  std::vector<EvalExample> examples;
  if (!data->is_sequence()) {
    const std::string path = files.beside(TRY(data->as_string()));
    examples = TRY(at_place(data->where(), read_examples(path, files)));
  }
  for (const Node& item : data->items()) {
    if (!item.is_map()) return item.wrong("a map");
    examples.push_back({item, item.where()});
  }
  if (examples.empty()) return error(ErrorKind::invalid, "there are no examples").at(data->where());
  return examples;
}

// What makes items out of a task's examples.
struct ItemTemplates {
  EvalKind kind = EvalKind::multiple_choice;
  FieldTemplate context, target;
  FieldTemplate answered;  // of a judge or a program: has {response}
  std::vector<FieldTemplate> choices;
  std::string delimiter, separator;

  Result<EvalItem> item(const EvalExample& example) const {
    EvalItem item;
    item.context = TRY(filled(context, example));
    if (kind == EvalKind::judge || kind == EvalKind::pass_at_k) {
      item.fields = TRY(fields_of(example));
      return item;
    }
    if (kind != EvalKind::multiple_choice) {
      item.target = TRY(filled(target, example));
      return item;
    }
    item.choices = TRY(choices_of(example));
    item.gold = TRY(gold_of(example, item.choices));
    return item;
  }
  // As a few-shot example of the items that follow.
  std::string shown(const EvalItem& item) const {
    return item.context + delimiter + (item.choices.empty() ? item.target : item.choices[item.gold]) + separator;
  }

 private:
  Result<Node> fields_of(const EvalExample& example) const {
    if (example.fields.find("response") != nullptr) {
      return error(ErrorKind::invalid, "the example has a field 'response', which is what the model answers")
          .at(Where(example.where))
          .hinted("give the field another name");
    }
    Node trial = example.fields;
    trial.set("response", "");
    TRY(at_place(example.where, answered.fill(trial)));
    return example.fields;
  }

  Result<std::vector<std::string>> choices_of(const EvalExample& example) const {
    std::vector<std::string> texts;
    const Node* const list =
        choices.size() == 1 ? TRY(at_place(example.where, choices[0].value(example.fields))) : nullptr;
    if (list != nullptr && list->is_sequence()) {
      for (const Node& choice : list->items()) {
        if (!choice.is_scalar() || choice.is_null())
          return error(ErrorKind::invalid, "a choice is {}", choice.describe()).at(Where(example.where));
        texts.push_back(choice.text());
      }
    } else {
      for (const FieldTemplate& choice : choices) texts.push_back(TRY(filled(choice, example)));
    }
    if (texts.size() < 2) {
      return error(ErrorKind::invalid, "the example has {}, and at least 2 are needed", counted(texts.size(), "choice"))
          .at(Where(example.where))
          .hinted("choices: \"{options}\" takes a field with a list, choices: [\"{a}\", \"{b}\"] a field each");
    }
    if (std::ranges::any_of(texts, &std::string::empty))
      return error(ErrorKind::invalid, "a choice of the example is empty").at(Where(example.where));
    return texts;
  }

  Result<std::size_t> gold_of(const EvalExample& example, const std::vector<std::string>& texts) const {
    const Node* const value = TRY(at_place(example.where, target.value(example.fields)));
    if (value != nullptr && value->kind() == NodeKind::number) {
      const Result<std::int64_t> index = value->as_int(0, static_cast<std::int64_t>(texts.size()) - 1);
      if (index.ok()) return static_cast<std::size_t>(*index);
      return error(ErrorKind::invalid, "the target is {}, and the choices are 0 to {}", value->text(), texts.size() - 1)
          .at(Where(example.where));
    }
    const std::string text = TRY(filled(target, example));
    const auto found = std::ranges::find(texts, text);
    if (found != texts.end()) return static_cast<std::size_t>(found - texts.begin());
    return error(ErrorKind::invalid, "the target '{}' is none of the choices", text)
        .at(Where(example.where))
        .hinted("the target is a number from 0, or a choice's text: " + nearest_hint(text, texts));
  }
};

Result<std::vector<EvalItem>> filled_items(std::span<const EvalExample> examples, const ItemTemplates& templates,
                                           const std::string& before) {
  std::vector<EvalItem> items;
  for (const EvalExample& example : examples) {
    items.push_back(TRY(templates.item(example)));
    items.back().context.insert(0, before);
  }
  return items;
}

// The few-shot examples as text.
Result<std::string> shots_of(const Node& task, const ItemTemplates& templates, SuiteFiles& files) {
  const Node* const shots = task.find("few_shot");
  if (shots == nullptr) return std::string();
  TRY(only_known(*shots, {"data", "count"}));
  const Node* const asked = TRY(shots->get("count"));
  const auto count = static_cast<std::size_t>(TRY(asked->as_int(0, 1000)));
  const std::vector<EvalExample> examples = TRY(examples_at(*shots, files));
  if (examples.size() < count) {
    return error(ErrorKind::invalid, "few_shot.count is {}, and there are {}", count,
                 counted(examples.size(), "example"))
        .at(asked->where());
  }
  std::string text;
  for (const EvalItem& item : TRY(filled_items(std::span(examples).first(count), templates, "")))
    text += templates.shown(item);
  return text;
}

Result<ItemTemplates> templates_of(const Node& node, const EvalTask& task) {
  ItemTemplates made;
  made.kind = task.kind;
  made.context = TRY(template_at(node, "context"));
  if (task.judge) made.answered = task.judge->prompt;
  if (task.program) made.answered = task.program->text;
  if (!task.judge && !task.program) made.target = TRY(template_at(node, "target"));
  made.delimiter = task.delimiter;
  made.separator = TRY(text_or(node, "separator", "\n\n"));
  if (task.kind != EvalKind::multiple_choice) return made;
  const Node* const choices = TRY(node.get("choices"));
  if (choices->is_scalar()) made.choices.push_back(TRY(template_of(*choices)));
  for (const Node& choice : choices->items()) made.choices.push_back(TRY(template_of(choice)));
  if (made.choices.empty()) return choices->wrong("a template, or a list of templates");
  return made;
}

Result<std::vector<EvalItem>> texts_of(const Node& task, SuiteFiles& files, std::size_t limit) {
  std::vector<EvalItem> items;
  const Node* const file = task.find("file");
  if ((file == nullptr) == (task.find("data") == nullptr)) {
    return error(ErrorKind::invalid, "one of 'file' and 'data' is needed")
        .at(task.where())
        .hinted("file: prose.txt, or data: pages.jsonl with text: \"{page}\"");
  }
  if (file != nullptr) {
    const std::string path = files.beside(TRY(file->as_string()));
    items.emplace_back().target = TRY(at_place(file->where(), files.text_of(path)));
    if (items[0].target.empty()) return error(ErrorKind::invalid, "'{}' is empty", path).at(file->where());
    return items;
  }
  const FieldTemplate text = TRY(template_at(task, "text"));
  for (const EvalExample& example : TRY(examples_at(task, files))) {
    if (items.size() == limit) break;
    items.emplace_back().target = TRY(filled(text, example));
    if (items.back().target.empty())
      return error(ErrorKind::invalid, "the text of the example is empty").at(Where(example.where));
  }
  return items;
}

}  // namespace

Result<std::vector<EvalItem>> items_of(const Node& node, const EvalTask& task, SuiteFiles& files, std::size_t limit) {
  if (task.kind == EvalKind::bits_per_byte) return texts_of(node, files, limit);
  const ItemTemplates templates = TRY(templates_of(node, task));
  const std::vector<EvalExample> examples = TRY(examples_at(node, files));
  return filled_items(std::span(examples).first(std::min(limit, examples.size())), templates,
                      TRY(shots_of(node, templates, files)));
}

}  // namespace systole
