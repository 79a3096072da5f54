#include "operate/run/eval_here.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>

#include "execute/serve/eval/archive.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "ground/base/version.h"
#include "ground/process/signal_watch.h"
#include "ground/process/spawn.h"
#include "ground/store/whole_file.h"
#include "operate/run/program_sandbox.h"

namespace systole {
namespace {

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
             const RunMessages& messages) {
  if (scores.cut_contexts > 0) {
    messages.warning(error(ErrorKind::invalid,
                           "task '{}': {} longer than the {} positions of '{}', and lost the beginning", task.name,
                           counted(scores.cut_contexts, "context"), engine.cache(), model)
                         .hinted("ask for fewer few-shot examples, or for more --context"));
  }
  if (scores.unjudged.empty()) return;
  constexpr std::size_t kShown = 3;
  std::string items;
  for (std::size_t i = 0; i < std::min(scores.unjudged.size(), kShown); ++i)
    items += (i > 0 ? "; " : "") + scores.unjudged[i].message;
  if (scores.unjudged.size() > kShown) items += "; …";
  messages.warning(error(ErrorKind::invalid, "task '{}': {} counted as wrong for '{}': {}", task.name,
                         counted(scores.unjudged.size(), "item"), model, items)
                       .hinted(scores.unjudged[0].hint));
}

// All tasks by one model. Nothing: a signal came. `samples`, `archived`: where lines of its items go, or null.
// A model whose last task ended before its last item has fewer tasks; `ended` says why.
Result<std::optional<EvaluatedModel>> evaluated(const EvalSuite& suite, const std::string& asked,
                                                const EvalOptions& options, const ProgramSandbox& sandbox,
                                                WholeFile* samples, std::string* archived, const SignalWatch& watch,
                                                std::optional<Error>& ended,
                                                const std::function<void(const std::string&)>& progress,
                                                const RunMessages& messages, Clock& clock) {
  const ServedModel served = TRY(find_model(asked, messages));
  const Machine machine = TRY(machine_for(served, options.backend, clock));
  const EngineOptions wanted{.slots = suite.generates() ? options.slots : 1,
                             .cache = served.context_for(options.context),
                             .score = suite.scores(),
                             .generates = suite.generates()};
  const std::unique_ptr<Engine> engine = TRY(open_engine(served, machine, wanted));
  Encoder encoder(served.tokenizer);
  const EvalModel model{*engine,
                        served.tokenizer,
                        served.before,
                        served.ends,
                        served.never_drawn(engine->vocabulary()),
                        [&](std::string_view text) { return served.tokens_of(encoder, text); },
                        &clock,
                        [&](const ProgramSpec& spec, const std::string& text) { return sandbox.run(spec, text); }};
  for (const EvalTask& task : suite.tasks) TRY(check_room(task, *engine));
  EvaluatedModel made{asked, served.step, {}};
  if (archived != nullptr) made.hash = TRY(served.hash());
  for (const EvalTask& task : suite.tasks) {
    Result<TaskScores> scores = evaluate(task, model, [&](std::size_t done) {
      progress(fmt::format("{}: {}: {} of {}", asked, task.name, done, counted(task.items.size(), "item")));
      return !watch.stop_requested();
    });
    if (!scores.ok() && scores.error().kind == ErrorKind::interrupted) return std::optional<EvaluatedModel>();
    made.tasks.push_back(TRY(std::move(scores)));
    TaskScores& last = made.tasks.back();
    warn_of(last, task, asked, *engine, messages);
    const std::string lines = sample_lines(made, task, last);
    if (samples != nullptr) samples->append(lines);
    if (archived != nullptr) *archived += lines;
    last.samples.clear();
    if (!last.ended) continue;
    ended = std::move(last.ended);
    made.tasks.pop_back();
    break;
  }
  return std::optional(std::move(made));
}

Error told_as(const char* what, Error why) {
  why.message = fmt::format("{}: {}", what, why.message);
  return why;
}

// Of an evaluation that ended early: the tasks that all models have whole.
void keep_whole(Evaluation& made) {
  if (made.models.size() > 1)
    made.models.pop_back();
  else
    made.suite.tasks.resize(made.models[0].tasks.size());
}

// What would end the command after hours, and leave nothing of them.
Status check_beforehand(const EvalOptions& options, Clock& clock) {
  const std::filesystem::path out(options.out), samples(options.samples);
  if (!out.empty() && out.lexically_normal() == samples.lexically_normal()) {
    return error(ErrorKind::invalid, "--out and --samples are both '{}'", options.out)
        .hinted("--out results.json --samples samples.jsonl");
  }
  for (const std::string& asked : std::span(options.models).subspan(1)) TRY(find_model(asked));
  if (options.archive.empty()) return {};
  TRY(make_folders(options.archive));
  const std::unique_ptr<Store> archive = TRY(open_posix_store(options.archive));
  const std::unique_ptr<FileLock> lock = TRY(lock_archive(options.archive, clock));
  const Result<ArchivedEntry> last = last_entry(*archive);
  if (!last.ok()) return below(options.archive, last.error());
  return {};
}

// The box that programs of models run in; nothing runs in it unless the suite has such tasks.
Result<ProgramSandbox> sandbox_for(const EvalSuite& suite, const EvalOptions& options, const RunMessages& messages) {
  if (!suite.runs_programs()) return ProgramSandbox();
  ProgramSandbox sandbox = TRY(ProgramSandbox::open(options.unsafe_command));
  for (const EvalTask& task : suite.tasks)
    if (task.program) TRY(find_program(task.program->command[0]));
  if (!sandbox.isolates()) {
    messages.warning(
        error(ErrorKind::unsupported, "programs that models write run here with the network and all files"));
  }
  return sandbox;
}

}  // namespace

Result<Evaluation> evaluate_here(const EvalOptions& options, const std::function<void(const std::string&)>& progress,
                                 const RunMessages& messages, Clock& clock) {
  Evaluation made;
  made.suite = TRY(read_suites(options.suites, options.limit));
  std::vector<EvalRequirement> required;
  for (const std::string& text : options.require)
    required.push_back(TRY(requirement_of(TRY(parse_requirement(text)), made.suite)));
  TRY(check_beforehand(options, clock));
  const ProgramSandbox sandbox = TRY(sandbox_for(made.suite, options, messages));
  const std::unique_ptr<WholeFile> out = file_of(options.out, "--out results.json"),
                                   samples = file_of(options.samples, "--samples samples.jsonl");
  const SignalWatch watch;
  for (const std::string& asked : options.models) {
    std::optional<EvaluatedModel> model =
        TRY(evaluated(made.suite, asked, options, sandbox, samples.get(),
                      options.archive.empty() ? nullptr : &made.samples, watch, made.ended, progress, messages, clock));
    made.interrupted = !model;
    if (made.interrupted) return made;
    made.models.push_back(std::move(*model));
    if (made.ended) break;
  }
  if (made.ended)
    keep_whole(made);
  else
    made.missed = unmet(required, made.models);
  if (samples != nullptr) samples->finish();
  if (made.suite.tasks.empty()) return made;
  made.results = results_node(made.suite, made.models, made.missed);
  if (made.ended) made.results.set("incomplete", made.ended->message);
  if (out != nullptr) {
    out->append(to_json(made.results, 2) + "\n");
    out->finish();
  }
  return made;
}

Result<std::unique_ptr<FileLock>> lock_archive(const std::string& folder, Clock& clock) {
  return lock_folder(folder, Seconds(60.0), clock);
}

Result<Node> archive_results(const EvalOptions& options, const Evaluation& made, const RunMessages& messages,
                             Clock& clock) {
  const Node about = Node::map({{"time", clock.timestamp()},
                                {"systole", kSystoleVersion},
                                {"backend", options.backend},
                                {"context", options.context},
                                {"limit", options.limit},
                                {"results", made.results}});
  const Result<std::unique_ptr<Store>> archive = open_posix_store(options.archive);
  if (!archive.ok()) return told_as("the results are not archived", archive.error());
  const Result<std::unique_ptr<FileLock>> lock = lock_archive(options.archive, clock);
  if (!lock.ok()) return told_as("the results are not archived", lock.error());
  const Result<ArchivedEntry> entry = append_entry(**archive, about, made.samples);
  if (!entry.ok()) return told_as("the results are not archived", below(options.archive, entry.error()));
  std::int64_t gone = 0;
  if (options.keep > 0) {
    const Result<std::int64_t> removed = keep_newest(**archive, options.keep);
    if (!removed.ok()) return told_as("the results are archived, but", below(options.archive, removed.error()));
    gone = *removed;
  }
  const std::string path = (std::filesystem::path(options.archive) / archive_file(entry->number)).string();
  messages.message(fmt::format("archived as {}, SHA-256 {}", path, entry->sha256));
  return Node::map({{"file", path}, {"entry", entry->number}, {"sha256", entry->sha256}, {"removed", gone}});
}

}  // namespace systole
