// `systole models register | list | show | promote`: the registry of models.

#include <fmt/ranges.h>

#include "ground/base/counted.h"
#include "ground/base/text_file.h"
#include "ground/base/units.h"
#include "operate/cli/command.h"
#include "operate/registry/registry.h"
#include "operate/run/model_artifact.h"
#include "operate/run/model_to_register.h"

namespace systole::cli {
namespace {

struct RegisterOptions {
  std::string model, name, results;
  std::vector<std::string> metrics, parents;
};
struct ListOptions {
  std::string name;
};
struct ShowOptions {
  std::string model;
};
struct PromoteOptions {
  std::string model, to;
  std::vector<std::string> required;
};

RegisteredModel found(const std::string& asked) {
  return find_registered(kRunsFolder, parse_model_reference(asked).value()).value();
}

ExitCode models_register(const RegisterOptions& options, Context& context) {
  Metrics given;
  if (!options.results.empty())
    given = metrics_in(parse_json(read_text_file(options.results).value(), options.results).value()).value();
  for (const std::string& text : options.metrics) {
    auto [name, value] = parse_metric(text).value();
    given[name] = value;
  }
  std::vector<ModelParent> parents;
  for (const std::string& parent : options.parents) parents.push_back({"models:" + found(parent).id(), ""});

  RegisteredModel model = model_to_register(options.model, options.name).value();
  for (const auto& [name, value] : given) model.metrics[name] = value;
  model.parents.insert(model.parents.end(), parents.begin(), parents.end());
  const RegisteredModel made = register_model(kRunsFolder, model, context.clock).value();
  context.out.data(fmt::format("{}: {}, {} and {}", made.id(), made.source(), counted(made.sha256.size(), "file"),
                               counted(made.metrics.size(), "metric")));
  if (made.step) context.out.message("its checkpoint is blessed: it is never removed");
  context.out.json(Node::map({{"model", to_node(made)}}));
  return ExitCode::done;
}

std::string texts_of(const Metrics& metrics) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : metrics) texts.push_back(fmt::format("{} {:.4g}", name, value));
  return fmt::format("{}", fmt::join(texts, ", "));
}

ExitCode models_list(const ListOptions& options, Context& context) {
  const std::vector<RegisteredModel> models = registered_models(kRunsFolder).value();
  if (!options.name.empty()) (void)find_model_in(models, {options.name, 1, {}}).value();
  std::vector<std::vector<std::string>> rows;
  Node list = Node::sequence();
  for (const RegisteredModel& model : models) {
    if (!options.name.empty() && model.name != options.name) continue;
    rows.push_back({model.id(), name_of(model.stage), model.at.substr(0, 19), model.source(), texts_of(model.metrics)});
    list.push(to_node(model));
  }
  if (rows.empty())
    context.out.message("no model is registered: systole models register RUN --name NAME");
  else
    context.out.data(table({"model", "stage", "registered (UTC)", "from", "metrics"}, rows, context.out.width()));
  context.out.json(Node::map({{"models", list}}));
  return ExitCode::done;
}

std::string text_of(const Promotion& promotion) {
  std::string text = fmt::format("{} {} to {}, by {}", promotion.at.substr(0, 19), name_of(promotion.from),
                                 name_of(promotion.to), promotion.by);
  if (!promotion.required.empty()) text += fmt::format("; required {}", fmt::join(promotion.required, ", "));
  return text;
}

std::string text_of(const ArtifactState& state) {
  const std::string text = name_of(state.kind);
  return state.why.empty() ? text : text + ": " + state.why;
}

std::vector<std::vector<std::string>> lines_of(const RegisteredModel& model, const ArtifactState& state) {
  std::vector<std::vector<std::string>> rows{{"stage", name_of(model.stage)},
                                             {"from", model.source()},
                                             {"artifact", text_of(state)},
                                             {"registered", model.at.substr(0, 19) + " by " + model.by}};
  for (const auto& [key, text] : {std::pair("workload SHA-256", &model.workload_sha256),
                                  {"plan SHA-256", &model.plan_sha256},
                                  {"data", &model.data}})
    if (!text->empty()) rows.push_back({key, *text});
  for (const ModelParent& parent : model.parents)
    rows.push_back({"parent", parent.hash.empty() ? parent.from : parent.from + ", hash " + parent.hash});
  for (const auto& [name, value] : model.metrics) rows.push_back({name, fmt::format("{}", value)});
  for (const auto& [file, hash] : model.sha256) rows.push_back({file, "SHA-256 " + hash});
  for (const Promotion& promotion : model.promotions) rows.push_back({"promoted", text_of(promotion)});
  return rows;
}

ExitCode models_show(const ShowOptions& options, Context& context) {
  const RegisteredModel model = found(options.model);
  const ArtifactState state = artifact_state(model, checkpoint::Verify::contents).value();
  context.out.data(table({model.id(), ""}, lines_of(model, state), context.out.width()));
  Node node = to_node(model);
  node.set("artifact", name_of(state.kind));
  node.set("why", state.why);
  context.out.json(Node::map({{"model", std::move(node)}}));
  return state.kind == ArtifactState::Kind::intact ? ExitCode::done : ExitCode::no;
}

ExitCode models_promote(const PromoteOptions& options, Context& context) {
  std::vector<Requirement> requirements;
  for (const std::string& text : options.required) requirements.push_back(parse_requirement(text).value());
  const ModelStage to = model_stage_named(options.to).value();
  const RegisteredModel model = found(options.model);
  if (is_for_one(to)) check_artifact(model, checkpoint::Verify::contents).value();
  const Result<Promoted> promoted =
      promote_model(kRunsFolder, {model.name, model.version, {}}, to, requirements, context.clock);
  if (!promoted.ok() && promoted.error().code == ErrorCode::requirement_not_met) {
    context.out.error(promoted.error());
    return ExitCode::unmet;
  }
  const Promoted& done = promoted.value();
  context.out.data(fmt::format("{}: {} to {}", done.model.id(), name_of(done.from), name_of(to)));
  if (done.archived) context.out.message(fmt::format("{}:{} is archived", done.model.name, *done.archived));
  Node node = to_node(done.model);
  node.set("from", name_of(done.from));
  node.set("archived", done.archived ? Node(*done.archived) : Node());
  context.out.json(Node::map({{"model", std::move(node)}}));
  return ExitCode::done;
}

void add_register(Subcommand group, Context& context) {
  auto options = std::make_shared<RegisterOptions>();
  Subcommand command = add_command(group, "register", "give a checkpoint or a published model a name and a version",
                                   options, context, models_register);
  command.add_option(
      "model", options->model,
      "RUN or RUN@STEP: a run's folder, name or number; or the folder of a Hugging Face model, or a GGUF "
      "file; without: the newest run");
  command.add_option("--name", options->name, "without: the name of the workload, the folder or the file");
  command.add_option("--metric", options->metrics, "NAME=VALUE; may be repeated").expected(1).take_all();
  command.add_option("--metrics", options->results, "a JSON file of results: its numbers, by their dotted keys");
  command.add_option("--parent", options->parents, "the registered model that it was made from; may be repeated")
      .expected(1)
      .take_all();
}

}  // namespace

void add_models(Subcommand app, Context& context) {
  Subcommand group = add_group(app, "models", "names, versions and stages of models");
  add_register(group, context);
  auto list = std::make_shared<ListOptions>();
  add_command(group, "list", "the registered models", list, context, models_list)
      .add_option("name", list->name, "only the versions of this name");
  auto show = std::make_shared<ShowOptions>();
  add_command(group, "show", "one, and whether its files are still those; ends with 1 if not", show, context,
              models_show)
      .add_option("model", show->model, "NAME, NAME:VERSION or NAME@STAGE")
      .required();
  auto promote = std::make_shared<PromoteOptions>();
  Subcommand command = add_command(group, "promote", "move one to another stage", promote, context, models_promote);
  command.add_option("model", promote->model, "NAME, NAME:VERSION or NAME@STAGE").required();
  command
      .add_option("--to", promote->to,
                  "the stage; of staging and production the version that has it before is archived")
      .check(one_of({"none", "staging", "production", "archived"}))
      .required();
  command
      .add_option("--require", promote->required,
                  "only if a metric is so, as accuracy>=0.71; also <=, > and <; may be repeated; ends with 4 if not")
      .expected(1)
      .take_all();
}

}  // namespace systole::cli
