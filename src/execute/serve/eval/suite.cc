#include "execute/serve/eval/suite.h"

#include <algorithm>
#include <filesystem>

#include "execute/serve/eval/suite_keys.h"
#include "execute/serve/field_template.h"
#include "execute/serve/json_lines.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "ground/base/nearest.h"
#include "ground/base/requirement.h"
#include "ground/store/sha256.h"

namespace systole {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr EvalKind kKinds[] = {EvalKind::multiple_choice, EvalKind::exact_match, EvalKind::regex,
                               EvalKind::bits_per_byte,   EvalKind::judge,       EvalKind::pass_at_k};

std::vector<std::string> keys_of(EvalKind kind) {
  if (kind == EvalKind::bits_per_byte) return {"name", "kind", "data", "text", "file"};
  if (kind == EvalKind::judge) return {"name", "kind", "data", "context", "stop", "tokens", "judge"};
  if (kind == EvalKind::pass_at_k) {
    return {"name",    "kind",    "data", "context",     "stop", "tokens",  "program", "file",
            "command", "samples", "k",    "temperature", "seed", "timeout", "memory"};
  }
  std::vector<std::string> keys{"name", "kind", "data", "context", "target", "few_shot", "delimiter", "separator"};
  if (kind == EvalKind::multiple_choice) {
    keys.push_back("choices");
  } else {
    keys.insert(keys.end(), {"stop", "tokens"});
  }
  if (kind == EvalKind::regex) keys.push_back("pattern");
  return keys;
}

Result<EvalKind> kind_of(const Node& task) {
  const Node* const kind = TRY(task.get("kind"));
  std::vector<std::string> names;
  for (const EvalKind known : kKinds) {
    if (kind->is_scalar() && kind->text() == name_of(known)) return known;
    names.push_back(name_of(known));
  }
  return error(ErrorKind::invalid, "there is no kind of task {}", kind->describe())
      .at(kind->where())
      .hinted(nearest_hint(kind->is_scalar() ? kind->text() : "", names));
}

Result<std::string> text_or(const Node& map, std::string_view key, std::string otherwise) {
  const Node* const found = map.find(key);
  if (found == nullptr) return otherwise;
  return found->as_string();
}

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

Result<std::vector<EvalItem>> items_of(std::span<const EvalExample> examples, const ItemTemplates& templates,
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
  for (const EvalItem& item : TRY(items_of(std::span(examples).first(count), templates, "")))
    text += templates.shown(item);
  return text;
}

Result<ItemTemplates> templates_of(const Node& task, EvalKind kind) {
  ItemTemplates made;
  made.kind = kind;
  made.context = TRY(template_at(task, "context"));
  if (kind != EvalKind::judge && kind != EvalKind::pass_at_k) made.target = TRY(template_at(task, "target"));
  made.delimiter = TRY(text_or(task, "delimiter", " "));
  made.separator = TRY(text_or(task, "separator", "\n\n"));
  if (kind != EvalKind::multiple_choice) return made;
  const Node* const choices = TRY(task.get("choices"));
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

Status read_answer_keys(const Node& node, const SuiteFiles& files, EvalTask& task) {
  if (const Node* const stop = node.find("stop")) {
    if (!stop->is_sequence()) return stop->wrong("a list of texts");
    for (const Node& one : stop->items()) {
      task.stop.push_back(TRY(one.as_string()));
      if (task.stop.back().empty()) return one.wrong("a text that is not empty");
    }
  }
  if (const Node* const tokens = node.find("tokens")) task.tokens = TRY(tokens->as_int(1, 1 << 20));
  if (task.kind == EvalKind::judge) {
    const Node* const judge = TRY(node.get("judge"));
    task.judge = TRY(judge_of(*judge, files));
  }
  if (task.kind == EvalKind::pass_at_k) task.program = TRY(program_of(node));
  if (task.kind != EvalKind::regex) return {};
  const Node* const pattern = TRY(node.get("pattern"));
  const std::string regex = TRY(pattern->as_string());
  task.pattern = TRY(at_place(pattern->where(), TextPattern::compile(regex)));
  return {};
}

bool can_be_required(const EvalTask& task) {
  return std::ranges::all_of(metrics_of(task.kind),
                             [&](const std::string& metric) { return is_metric_name(task.name + "." + metric); });
}

Result<EvalTask> read_task(const Node& node, SuiteFiles& files, std::size_t limit) {
  if (!node.is_map()) return node.wrong("a map");
  const EvalKind kind = TRY(kind_of(node));
  TRY(only_known(node, keys_of(kind)));
  const Node* const name = TRY(node.get("name"));
  EvalTask task;
  task.name = TRY(name->as_string());
  task.kind = kind;
  if (task.name.empty() || !can_be_required(task))
    return name->wrong("a name that --require can have: printable ASCII without spaces, <, > and =");
  if (kind == EvalKind::bits_per_byte) {
    task.items = TRY(texts_of(node, files, limit));
    return task;
  }
  ItemTemplates templates = TRY(templates_of(node, kind));
  task.delimiter = templates.delimiter;
  if (kind != EvalKind::multiple_choice) TRY(read_answer_keys(node, files, task));
  if (task.judge) templates.answered = task.judge->prompt;
  if (task.program) templates.answered = task.program->text;
  const std::vector<EvalExample> examples = TRY(examples_at(node, files));
  task.items = TRY(items_of(std::span(examples).first(std::min(limit, examples.size())), templates,
                            TRY(shots_of(node, templates, files))));
  return task;
}

}  // namespace

const char* name_of(EvalKind kind) {
  switch (kind) {
    case EvalKind::multiple_choice: return "multiple_choice";
    case EvalKind::exact_match: return "exact_match";
    case EvalKind::regex: return "regex";
    case EvalKind::bits_per_byte: return "bits_per_byte";
    case EvalKind::judge: return "judge";
    case EvalKind::pass_at_k: return "pass_at_k";
  }
  return "";
}

std::vector<std::string> metrics_of(EvalKind kind) {
  if (kind == EvalKind::multiple_choice) return {"acc", "acc_norm", "acc_bytes"};
  if (kind == EvalKind::bits_per_byte) return {"bits_per_byte", "byte_perplexity", "word_perplexity"};
  if (kind == EvalKind::judge) return {"score", "refused"};
  if (kind == EvalKind::pass_at_k) return {"pass@1", "pass@k"};
  return {"exact_match"};
}

bool asks_for_answers(EvalKind kind) {
  return kind == EvalKind::exact_match || kind == EvalKind::regex || kind == EvalKind::judge ||
         kind == EvalKind::pass_at_k;
}

bool EvalSuite::scores() const {
  return std::ranges::any_of(tasks, [](const EvalTask& task) {
    return task.kind == EvalKind::multiple_choice || task.kind == EvalKind::bits_per_byte;
  });
}

bool EvalSuite::generates() const {
  return std::ranges::any_of(tasks, [](const EvalTask& task) { return asks_for_answers(task.kind); });
}

bool EvalSuite::runs_programs() const {
  return std::ranges::any_of(tasks, [](const EvalTask& task) { return task.program.has_value(); });
}

std::string EvalSuite::sha256() const {
  std::string hashes;
  for (const EvalFile& file : files) hashes += file.sha256 + "\n";
  return sha256_of(hashes);
}

Result<EvalSuite> read_suite(const std::string& path, std::int64_t limit) {
  SuiteFiles files{std::filesystem::path(path).parent_path().string()};
  const std::string yaml = TRY(files.text_of(path));
  const Node root = TRY(parse_yaml(yaml, path));
  TRY(only_known(root, {"suite", "tasks"}));
  const Node* const version = TRY(root.get("suite"));
  if (const Result<std::int64_t> number = version->as_int(1, kVersion); !number.ok()) {
    return error(ErrorKind::invalid, "suite: {} is no version that this program reads", version->describe())
        .at(version->where())
        .hinted(fmt::format("suite: {}", kVersion));
  }
  const Node* const tasks = TRY(root.get("tasks"));
  if (!tasks->is_sequence() || tasks->items().empty()) return tasks->wrong("a list of tasks");
  EvalSuite suite{path, {}};
  std::vector<Error> errors;
  for (const Node& node : tasks->items()) {
    Result<EvalTask> task = read_task(node, files, limit > 0 ? static_cast<std::size_t>(limit) : SIZE_MAX);
    if (!task.ok()) {
      errors.push_back(std::move(task).error());
      continue;
    }
    if (std::ranges::find(suite.tasks, task->name, &EvalTask::name) != suite.tasks.end())
      errors.push_back(error(ErrorKind::invalid, "two tasks are called '{}'", task->name).at(node.where()));
    suite.tasks.push_back(std::move(task).value());
  }
  if (!errors.empty()) return together(std::move(errors));
  suite.files = std::move(files.read);
  return suite;
}

Result<EvalSuite> read_suites(const std::vector<std::string>& paths, std::int64_t limit) {
  if (paths.size() == 1) return read_suite(paths[0], limit);
  EvalSuite all;
  std::vector<Error> errors;
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const std::string name = std::filesystem::path(path).stem().string();
    if (std::ranges::find(names, name) != names.end()) {
      errors.push_back(error(ErrorKind::invalid, "two suites are called '{}'", name)
                           .at({path})
                           .hinted("give the files different names: tasks are called SUITE/TASK"));
      continue;
    }
    names.push_back(name);
    Result<EvalSuite> one = read_suite(path, limit);
    if (!one.ok()) {
      errors.push_back(std::move(one).error());
      continue;
    }
    all.path += (all.path.empty() ? "" : ", ") + path;
    all.files.insert(all.files.end(), one->files.begin(), one->files.end());
    for (EvalTask& task : one->tasks) {
      task.name.insert(0, name + "/");
      if (!can_be_required(task)) {
        errors.push_back(error(ErrorKind::invalid, "--require cannot name the task '{}'", task.name)
                             .at({path})
                             .hinted("give the file a short name of printable ASCII without spaces, <, > and ="));
        break;
      }
      all.tasks.push_back(std::move(task));
    }
  }
  if (!errors.empty()) return together(std::move(errors));
  return all;
}

}  // namespace systole
