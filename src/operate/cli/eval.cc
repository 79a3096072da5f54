// `systole eval SUITE... --model MODEL`: how good models are at the tasks of suites, beside each other.

#include <cmath>
#include <filesystem>

#include "execute/serve/eval/archive.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "operate/cli/command.h"
#include "operate/cli/device_options.h"
#include "operate/cli/model_options.h"
#include "operate/cli/run_scene.h"
#include "operate/run/eval_here.h"

namespace systole::cli {
namespace {

struct EvalCommand : EvalOptions {
  std::string verify;
};

// Perplexities of bad models are huge.
std::string number_of(double value) {
  return std::abs(value) < 1e6 ? fmt::format("{:.4f}", value) : fmt::format("{:.4g}", value);
}

std::string interval_of(const MetricEstimate& estimate) {
  if (!estimate.standard_error) return "-";
  return number_of(estimate.low()) + " to " + number_of(estimate.high());
}

// A row for each metric and model; of every model but the first also the difference to that.
std::string results_table(const EvalSuite& suite, const std::vector<EvaluatedModel>& models, int width) {
  std::vector<std::string> headers{"task", "metric", "items>", "model", "value>", "stderr>", "95% interval>"};
  if (models.size() > 1) headers.insert(headers.end(), {"difference>", "its 95% interval>"});
  std::vector<std::vector<std::string>> rows;
  for (std::size_t t = 0; t < suite.tasks.size(); ++t) {
    for (std::size_t m = 0; m < models[0].tasks[t].metrics.size(); ++m) {
      for (const EvaluatedModel& model : models) {
        const Metric& metric = model.tasks[t].metrics[m];
        const MetricEstimate value = estimate(metric);
        std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{
            suite.tasks[t].name, metric.name, std::to_string(suite.tasks[t].items.size()), model.name,
            number_of(value.value), value.standard_error ? number_of(*value.standard_error) : "-", interval_of(value)});
        if (models.size() == 1) continue;
        const MetricEstimate other = difference(metric, models[0].tasks[t].metrics[m]);
        const bool first = &model == &models[0];
        row.push_back(first ? "" : fmt::format("{:+.4f}", other.value));
        row.push_back(first ? "" : interval_of(other));
      }
    }
  }
  return table(headers, rows, width);
}

ExitCode verify(const std::string& folder, Context& context) {
  const std::unique_ptr<Store> archive = open_posix_store(folder).value();
  std::unique_ptr<FileLock> lock;
  if (path_exists(std::filesystem::path(folder) / "lock")) {
    Result<std::unique_ptr<FileLock>> held = lock_archive(folder, context.clock);
    if (held.ok()) lock = std::move(held).value();
    if (!held.ok() && held.error().kind == ErrorKind::busy) fail(held.error());  // others: who may only read may verify
  }
  const Result<ArchiveReport> report = verify_archive(*archive);
  if (!report.ok()) fail(below(folder, report.error()));
  if (report->entries == 0 && report->last.number == 0 && report->wrong.empty()) {
    fail(error(ErrorKind::not_found, "'{}' has no archive of evaluations", folder)
             .hinted("systole eval suite.yaml --model MODEL --archive FOLDER"));
  }
  std::string text;
  Node wrong = Node::sequence();
  for (const ArchiveReport::Wrong& one : report->wrong) {
    text += fmt::format("entry {} does not fit: {}\n", one.entry, one.why);
    wrong.push(Node::map({{"entry", one.entry}, {"why", one.why}}));
  }
  text += fmt::format("{} of {}; the last is {}, with SHA-256 {}", counted(report->entries, "entry"), folder,
                      report->last.number, report->last.sha256);
  if (report->removed > 0) text += fmt::format("; those up to {} were removed", report->removed);
  if (report->wrong.empty()) text += ": the chain holds";
  context.out.data(text);
  context.out.json(Node::map({{"archive", folder},
                              {"entries", report->entries},
                              {"removed", report->removed},
                              {"last", Node::map({{"entry", report->last.number}, {"sha256", report->last.sha256}})},
                              {"wrong", std::move(wrong)}}));
  return report->wrong.empty() ? ExitCode::done : ExitCode::no;
}

// Fails with why an evaluation ended before its end, after what there is of it.
[[noreturn]] void end_early(const EvalCommand& options, const Evaluation& made, Context& context) {
  if (!made.suite.tasks.empty()) context.out.data(results_table(made.suite, made.models, context.out.width()));
  context.out.notice(options.samples.empty() ? "answers so far are not kept: --samples FILE keeps them"
                                             : "answers so far are in the file of --samples");
  fail(*made.ended);
}

ExitCode eval(const EvalCommand& options, Context& context) {
  if (!options.verify.empty()) return verify(options.verify, context);
  if (options.suites.empty() || options.models.empty()) {
    fail(error(ErrorKind::invalid, "{} is missing", options.suites.empty() ? "the suite" : "--model")
             .hinted("systole eval suite.yaml --model MODEL"));
  }
  const RunMessages messages = scene_of(context).messages;
  const auto progress = [&](const std::string& text) { context.out.progress(text); };
  const Evaluation made = evaluate_here(options, progress, messages, context.clock).value();
  if (made.interrupted) return ExitCode::interrupted;
  context.out.end_progress();
  if (made.ended) end_early(options, made, context);
  Node results = made.results;
  context.out.data(results_table(made.suite, made.models, context.out.width()));
  std::optional<Error> unarchived;
  if (!options.archive.empty()) {
    Result<Node> archived = archive_results(options, made, messages, context.clock);
    if (!archived.ok()) unarchived = archived.error();
    results.set("archived", archived.ok() ? std::move(archived).value() : Node());
  }
  context.out.json(results);
  if (unarchived) fail(*unarchived);
  for (const std::string& one : made.missed) context.out.warning(one);
  return made.missed.empty() ? ExitCode::done : ExitCode::unmet;
}

}  // namespace

void add_eval(Subcommand app, Context& context) {
  auto options = std::make_shared<EvalCommand>();
  Subcommand command = add_command(app, "eval", "how good models are at the tasks of a suite", options, context, eval);
  command.add_option("suite", options->suites,
                     "the suite: a YAML file with tasks; of several suites, a task is called SUITE/TASK");
  command
      .add_option(
          "--model", options->models,
          "the folder of a Hugging Face model or of `systole quantize`, a GGUF file, RUN or RUN@STEP, or models:NAME, "
          "models:NAME:VERSION or models:NAME@STAGE; again for each further model, which is compared with the first")
      .expected(1)
      .take_all();
  command.add_option("--out", options->out, "a file for the results, as JSON");
  command.add_option("--samples", options->samples, "a file for what was asked and answered: a line of JSON an item");
  command
      .add_option("--require", options->require,
                  "TASK.METRIC>=NUMBER (or >, <=, <): if a model's value is not so, the exit code is 4")
      .expected(1)
      .take_all();
  command.add_option("--limit", options->limit, "so many items of each task, the first; 0: all")
      .check(at_least(0))
      .capture_default_str();
  command.add_option(
      "--archive", options->archive,
      "a folder that keeps results and all answers: an entry a run, each with the hash of the one before");
  command.add_option("--keep", options->keep, "so many entries of the archive, the newest; without: all")
      .check(at_least(1))
      .needs("--archive");
  command
      .add_option("--verify", options->verify,
                  "instead of evaluating: check that the entries of an archive are unchanged")
      .excludes("suite")
      .excludes("--model");
  command.add_flag("--unsafe-command", options->unsafe_command,
                   "run programs that a model wrote also where they cannot be kept from the network");
  add_context_option(command, options->context, "tokens of a sequence");
  command.add_option("--slots", options->slots, "answers that are generated at once")
      .check(at_least(1))
      .capture_default_str();
  add_device_options(command, options->backend);
}

}  // namespace systole::cli
