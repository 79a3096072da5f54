#include "execute/serve/eval/suite.h"

#include <algorithm>
#include <filesystem>

#include "execute/serve/eval/suite_items.h"
#include "execute/serve/eval/suite_keys.h"
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
  if (asks_for_answers(kind)) TRY(read_answer_keys(node, files, task));
  if (kind != EvalKind::bits_per_byte) task.delimiter = TRY(text_or(node, "delimiter", " "));
  task.items = TRY(items_of(node, task, files, limit));
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
  if (root.is_map() && root.find("suite") == nullptr)
    return error(ErrorKind::invalid, "a suite says first which version of its form it has")
        .at(root.where())
        .coded(ErrorCode::missing_key)
        .about("suite")
        .hinted(fmt::format("begin it with suite: {}", kVersion));
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
