// `systole explain WORD [WORKLOAD]`: a key's meaning, values and default; or a topic, answered from that workload, its
// plan on this machine, and the catalog; or an access log: where the time of requests went.

#include <algorithm>

#include "describe/models/list.h"
#include "describe/spec/schema.h"
#include "ground/base/counted.h"
#include "ground/base/nearest.h"
#include "operate/cli/explain_requests.h"
#include "operate/cli/workload_options.h"
#include "operate/run/catalog_files.h"
#include "operate/run/plan_here.h"
#include "operate/targets/job_targets.h"

namespace systole::cli {
namespace {

struct ExplainOptions {
  std::string topic = "keys";
  WorkloadArguments workload;
};

// Names of topics, keys, sections, and last parts of keys, each once.
std::vector<std::string> all_names() {
  std::vector<std::string> names = topic_names();
  const auto add = [&](const std::string& name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const Key& key : schema().keys) add(key.path);
  for (const Section& section : schema().sections) add(section.path);
  for (const Key& key : schema().keys) add(key.path.substr(key.path.rfind('.') + 1));
  return names;
}

Error unknown_word(const std::string& word) {
  const std::vector<std::string> names = all_names();
  return error(ErrorKind::not_found, "'{}' is no key of a workload and no topic", word)
      .hinted(nearest(word, names).empty() ? "systole explain keys lists all keys, systole explain topics all topics"
                                           : nearest_hint(word, names));
}

// The workload, its model and, if the topic needs it, its plan.
struct WorkloadAtHand {
  Workload workload;
  std::optional<PlanFacts> plan;

  void tell(const ExplainOptions& options, bool asks_plan, TopicFacts& facts, Context& context) {
    LoadedWorkload loaded = load_workload(options.workload).value();
    workload = std::move(loaded.workload);
    facts.workload = &workload;
    facts.workload_name = options.workload.path;
    for (const JobTargetRow* target : targets_named(workload, loaded.source)) facts.targets.emplace_back(target->name);
    const bool serves = workload.kind == Workload::Kind::serve;
    if (!workload.has_model() && !serves) return;
    const std::unique_ptr<const Model> model = make_model(workload.model);
    facts.parameters = num_parameters(*model);
    facts.trainable = num_trainable(*model);
    if (!asks_plan) return;
    if (serves) {
      facts.no_plan = "it serves, and `systole plan` says what that takes";
      return;
    }
    if (const std::int64_t devices = workload.num_devices(); devices > 1) {
      facts.no_plan =
          fmt::format("it is laid out on {}, and a plan for one says nothing of them", counted(devices, "device"));
      return;
    }
    Result<PlanFacts> made = plan_here(workload, *facts.parameters, context.clock);
    if (!made.ok()) {
      facts.no_plan = made.error().message;
      return;
    }
    plan = *std::move(made);
    facts.plan = &*plan;
  }
};

Node node_of(const std::vector<std::string>& lines) {
  Node node = Node::sequence();
  for (const std::string& line : lines) node.push(line);
  return node;
}

ExitCode tell_topic(const Topic& topic, const ExplainOptions& options, Context& context) {
  CatalogView view = open_catalog_view(context.clock).value();
  TopicFacts facts{.catalog = &view.catalog, .tables = &view.tables, .today = view.today};
  WorkloadAtHand at_hand;
  if (!options.workload.path.empty()) at_hand.tell(options, topic.asks_plan, facts, context);
  const TopicAnswer answer = answer_topic(topic, facts).value();
  std::string text = topic_text(topic, answer, facts);
  // A topic may also be a key: mesh, memory, checkpoint.
  if (const Result<std::string> key = explain_key(options.topic); key.ok()) text += "\n" + *key;
  context.out.prose(text);
  context.out.json(Node::map({{"topic", topic.name},
                              {"title", topic.title},
                              {"text", text},
                              {"keys", node_of(split_words(topic.keys))},
                              {"workload", node_of(answer.workload)},
                              {"catalog", node_of(answer.catalog)}}));
  return ExitCode::done;
}

// Appends the workload's value of a fully named key.
std::string with_value(std::string text, const ExplainOptions& options) {
  const bool whole_name = schema().key(options.topic) != nullptr || schema().section(options.topic) != nullptr;
  if (options.workload.path.empty() || !whole_name) return text;
  const Workload workload = load_workload(options.workload).value().workload;
  return text + fmt::format("in {}: {}\n", options.workload.path, value_text(workload, options.topic));
}

ExitCode explain(const ExplainOptions& options, Context& context) {
  if (const Topic* topic = find_topic(options.topic)) return tell_topic(*topic, options, context);
  std::string text;
  if (options.topic == "topics") {
    text = topics_list();
  } else {
    const Result<std::string> key = explain_key(options.topic);
    if (!key.ok() && names_access_log(options.topic)) return explain_requests(options.topic, context);
    if (!key.ok()) fail(unknown_word(options.topic));
    text = with_value(*key, options);
  }
  context.out.prose(text);
  context.out.json(Node::map({{"topic", options.topic}, {"text", text}}));
  return ExitCode::done;
}

}  // namespace

void add_explain(Subcommand app, Context& context) {
  auto options = std::make_shared<ExplainOptions>();
  options->workload.command = true;
  options->workload.machines = true;
  options->workload.serves = true;
  Subcommand command =
      add_command(app, "explain", "what a key of the workload means, takes and defaults to; or a topic, as mfu or spot",
                  options, context, explain);
  command.add_option(
      "key", options->topic,
      "train.optimizer.rate, or rate, or a section; a topic; topics: all of them; or an access log that `systole "
      "serve --access-log` wrote; without: all keys");
  command.add_option("workload", options->workload.path,
                     "answer for this workload, a YAML file, and say what it gives to the key");
  command.add_option("--env", options->workload.environment, "lay this environment of the workload over it");
  command.add_option("--set", options->workload.sets, "lay KEY=VALUE over the workload; may be repeated").take_all();
}

}  // namespace systole::cli
