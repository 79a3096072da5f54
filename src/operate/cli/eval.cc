// `systole eval SUITE... --model MODEL`: how good models are at the tasks of suites, beside each other.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>

#include "execute/serve/eval/archive.h"
#include "execute/serve/eval/results.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "ground/base/version.h"
#include "ground/process/signal_watch.h"
#include "ground/process/spawn.h"
#include "operate/cli/command.h"
#include "operate/cli/device_options.h"
#include "operate/cli/model_argument.h"
#include "operate/cli/whole_file.h"
#include "operate/run/program_sandbox.h"
#include "operate/run/served_model.h"

namespace systole::cli {
namespace {

struct EvalCommand {
  std::string out, samples, archive, verify, backend = "cpu";
  std::vector<std::string> suites, models, require;
  std::int64_t limit = 0, context = 0, slots = 8, keep = 0;
  bool unsafe_command = false;
};

std::unique_ptr<WholeFile> file_of(const std::string& path, const std::string& hint) {
  return path.empty() ? nullptr : std::make_unique<WholeFile>(path, hint);
}

// One line of JSON for each item.
std::string sample_lines(const EvaluatedModel& model, const EvalTask& task, const TaskScores& scores) {
  std::string text;
  for (std::size_t i = 0; i < scores.samples.size(); ++i) {
    Node line = Node::map({{"model", model.name}, {"task", task.name}, {"item", i}});
    for (const Node::Entry& entry : scores.samples[i].entries()) line.set(entry.key, entry.value);
    text += to_json(line) + "\n";
  }
  return text;
}

// What results do not show: contexts that were cut, and items that count as wrong.
void warn_of(const TaskScores& scores, const EvalTask& task, const std::string& model, const Engine& engine,
             Context& context) {
  if (scores.cut_contexts > 0) {
    context.out.warning(fmt::format("task '{}': {} longer than the {} positions of '{}', and lost the beginning",
                                    task.name, counted(scores.cut_contexts, "context"), engine.cache(), model),
                        "ask for fewer few-shot examples, or for more --context");
  }
  if (scores.unjudged.empty()) return;
  constexpr std::size_t kShown = 3;
  std::string items;
  for (std::size_t i = 0; i < std::min(scores.unjudged.size(), kShown); ++i)
    items += (i > 0 ? "; " : "") + scores.unjudged[i].message;
  if (scores.unjudged.size() > kShown) items += "; …";
  context.out.warning(fmt::format("task '{}': {} counted as wrong for '{}': {}", task.name,
                                  counted(scores.unjudged.size(), "item"), model, items),
                      scores.unjudged[0].hint);
}

// All tasks by one model. Nothing: a signal came. `samples`, `archived`: where lines of its items go, or null.
// A model whose last task ended before its last item has fewer tasks; `ended` says why.
std::optional<EvaluatedModel> evaluated(const EvalSuite& suite, const std::string& asked, const EvalCommand& options,
                                        const ProgramSandbox& sandbox, WholeFile* samples, std::string* archived,
                                        const SignalWatch& watch, std::optional<Error>& ended, Context& context) {
  const ServedModel served = find_model_argument(asked, context);
  const Machine machine = machine_for(served, options.backend, context.clock).value();
  const std::unique_ptr<Engine> engine = open_engine(served, machine,
                                                     {.slots = suite.generates() ? options.slots : 1,
                                                      .cache = served.context_for(options.context),
                                                      .score = suite.scores(),
                                                      .generates = suite.generates()})
                                             .value();
  Encoder encoder(served.tokenizer);
  const EvalModel model{*engine,
                        served.tokenizer,
                        served.before,
                        served.ends,
                        served.never_drawn(engine->vocabulary()),
                        [&](std::string_view text) { return served.tokens_of(encoder, text); },
                        &context.clock,
                        [&](const ProgramSpec& spec, const std::string& text) { return sandbox.run(spec, text); }};
  for (const EvalTask& task : suite.tasks) check_room(task, *engine).value();
  EvaluatedModel made{asked, served.step, {}};
  if (archived != nullptr) made.hash = served.hash().value();
  for (const EvalTask& task : suite.tasks) {
    Result<TaskScores> scores = evaluate(task, model, [&](std::size_t done) {
      context.out.progress(fmt::format("{}: {}: {} of {}", asked, task.name, done, counted(task.items.size(), "item")));
      return !watch.stop_requested();
    });
    if (!scores.ok() && scores.error().kind == ErrorKind::interrupted) return std::nullopt;
    made.tasks.push_back(std::move(scores).value());
    TaskScores& last = made.tasks.back();
    warn_of(last, task, asked, *engine, context);
    const std::string lines = sample_lines(made, task, last);
    if (samples != nullptr) samples->append(lines);
    if (archived != nullptr) *archived += lines;
    last.samples.clear();
    if (!last.ended) continue;
    ended = std::move(last.ended);
    made.tasks.pop_back();
    break;
  }
  return made;
}

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

// The folder of an archive, which no other process changes.
struct LockedArchive {
  std::unique_ptr<Store> store;
  std::unique_ptr<FileLock> lock;
};

Result<LockedArchive> lock_archive(const std::string& folder, Context& context) {
  LockedArchive archive;
  archive.store = TRY(open_posix_store(folder));
  archive.lock = TRY(lock_folder(folder, Seconds(60.0), context.clock));
  return archive;
}

Error told_as(const char* what, Error why) {
  why.message = fmt::format("{}: {}", what, why.message);
  return why;
}

// What the document says of the new entry.
Result<Node> archive_results(const EvalCommand& options, const Node& results, std::string_view samples,
                             Context& context) {
  const Node about = Node::map({{"time", context.clock.timestamp()},
                                {"systole", kSystoleVersion},
                                {"backend", options.backend},
                                {"context", options.context},
                                {"limit", options.limit},
                                {"results", results}});
  const Result<LockedArchive> archive = lock_archive(options.archive, context);
  if (!archive.ok()) return told_as("the results are not archived", archive.error());
  const Result<ArchivedEntry> entry = append_entry(*archive->store, about, samples);
  if (!entry.ok()) return told_as("the results are not archived", below(options.archive, entry.error()));
  std::int64_t gone = 0;
  if (options.keep > 0) {
    const Result<std::int64_t> removed = keep_newest(*archive->store, options.keep);
    if (!removed.ok()) return told_as("the results are archived, but", below(options.archive, removed.error()));
    gone = *removed;
  }
  const std::string path = (std::filesystem::path(options.archive) / archive_file(entry->number)).string();
  context.out.message(fmt::format("archived as {}, SHA-256 {}", path, entry->sha256));
  return Node::map({{"file", path}, {"entry", entry->number}, {"sha256", entry->sha256}, {"removed", gone}});
}

ExitCode verify(const std::string& folder, Context& context) {
  const std::unique_ptr<Store> archive = open_posix_store(folder).value();
  std::unique_ptr<FileLock> lock;
  if (path_exists(std::filesystem::path(folder) / "lock")) {
    Result<std::unique_ptr<FileLock>> held = lock_folder(folder, Seconds(60.0), context.clock);
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

// What would end the command after hours, and leave nothing of them.
void check_beforehand(const EvalCommand& options, Context& context) {
  const std::filesystem::path out(options.out), samples(options.samples);
  if (!out.empty() && out.lexically_normal() == samples.lexically_normal()) {
    fail(error(ErrorKind::invalid, "--out and --samples are both '{}'", options.out)
             .hinted("--out results.json --samples samples.jsonl"));
  }
  for (const std::string& asked : std::span(options.models).subspan(1)) (void)find_model(asked).value();
  if (options.archive.empty()) return;
  make_folders(options.archive).value();
  const LockedArchive archive = lock_archive(options.archive, context).value();
  const Result<ArchivedEntry> last = last_entry(*archive.store);
  if (!last.ok()) fail(below(options.archive, last.error()));
}

// Fails with `why`, and keeps what there is: each answer, and the tasks that all of these models have whole.
[[noreturn]] void end_early(EvalSuite suite, std::vector<EvaluatedModel> models, WholeFile* samples, WholeFile* out,
                            Error why, Context& context) {
  context.out.end_progress();
  if (models.size() > 1)
    models.pop_back();
  else
    suite.tasks.resize(models[0].tasks.size());
  if (samples != nullptr) samples->finish();
  if (!suite.tasks.empty()) {
    context.out.data(results_table(suite, models, context.out.width()));
    if (out != nullptr) {
      out->append(to_json(results_node(suite, models, {}).set("incomplete", why.message), 2) + "\n");
      out->finish();
    }
  }
  context.out.notice(samples == nullptr ? "answers so far are not kept: --samples FILE keeps them"
                                        : "answers so far are in the file of --samples");
  fail(why);
}

ExitCode eval(const EvalCommand& options, Context& context) {
  if (!options.verify.empty()) return verify(options.verify, context);
  if (options.suites.empty() || options.models.empty()) {
    fail(error(ErrorKind::invalid, "{} is missing", options.suites.empty() ? "the suite" : "--model")
             .hinted("systole eval suite.yaml --model MODEL"));
  }
  const EvalSuite suite = read_suites(options.suites, options.limit).value();
  std::vector<EvalRequirement> required;
  for (const std::string& text : options.require)
    required.push_back(requirement_of(parse_requirement(text).value(), suite).value());
  check_beforehand(options, context);
  ProgramSandbox sandbox;
  if (suite.runs_programs()) {
    sandbox = ProgramSandbox::open(options.unsafe_command).value();
    for (const EvalTask& task : suite.tasks)
      if (task.program) (void)find_program(task.program->command[0]).value();
    if (!sandbox.isolates()) context.out.warning("programs that models write run here with the network and all files");
  }
  const std::unique_ptr<WholeFile> out = file_of(options.out, "--out results.json"),
                                   samples = file_of(options.samples, "--samples samples.jsonl");
  const SignalWatch watch;
  std::vector<EvaluatedModel> models;
  std::optional<Error> ended;
  std::string lines;
  for (const std::string& asked : options.models) {
    std::optional<EvaluatedModel> made = evaluated(suite, asked, options, sandbox, samples.get(),
                                                   options.archive.empty() ? nullptr : &lines, watch, ended, context);
    if (!made) return ExitCode::interrupted;
    models.push_back(std::move(*made));
    if (ended) end_early(suite, std::move(models), samples.get(), out.get(), *ended, context);
  }
  context.out.end_progress();
  const std::vector<std::string> missed = unmet(required, models);
  Node results = results_node(suite, models, missed);
  if (samples != nullptr) samples->finish();
  if (out != nullptr) {
    out->append(to_json(results, 2) + "\n");
    out->finish();
  }
  context.out.data(results_table(suite, models, context.out.width()));
  std::optional<Error> unarchived;
  if (!options.archive.empty()) {
    Result<Node> archived = archive_results(options, results, lines, context);
    if (!archived.ok()) unarchived = archived.error();
    results.set("archived", archived.ok() ? std::move(archived).value() : Node());
  }
  context.out.json(results);
  if (unarchived) fail(*unarchived);
  for (const std::string& one : missed) context.out.warning(one);
  return missed.empty() ? ExitCode::done : ExitCode::unmet;
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
