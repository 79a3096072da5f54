// `systole runs`: all runs, newest first, from the index; --rebuild rebuilds the index from the folders. Then the runs
// submitted to a cluster, as the cluster reports them.

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "describe/spec/target_needs.h"
#include "ground/base/counted.h"
#include "ground/base/units.h"
#include "operate/cli/run_scene.h"
#include "operate/runs/indexed_runs.h"
#include "operate/runs/submitted_rows.h"

namespace systole::cli {
namespace {

struct RunsOptions {
  std::string folder = kRunsFolder;
  std::string on, context;
  bool rebuild = false, verify_audit = false;
};

Node node_of(const RunRow& row) {
  const RunSummary& run = row.summary;
  const auto maybe = [](const std::optional<double>& number) { return number ? Node(*number) : Node(); };
  const std::string state = name_of(run.state);
  std::vector<Node::Entry> fields;  // filled in place: an initializer list would be copied
  fields.reserve(12);
  for (const auto& [key, text] : {std::pair("folder", &run.run),
                                  {"name", &run.workload},
                                  {"state", &state},
                                  {"started_at", &run.since},
                                  {"opened_at", &row.opened_at}})
    fields.push_back({key, *text});
  for (const auto& [key, count] : {std::pair("steps", run.step),
                                   {"tokens", run.tokens},
                                   {"processes", row.processes},
                                   {"parameters", row.parameters}})
    fields.push_back({key, count});
  fields.push_back({"loss", maybe(run.loss)});
  fields.push_back({"bits_per_byte", maybe(run.bits_per_byte)});
  fields.push_back({"seconds_s", row.seconds.count()});
  return Node::map(std::move(fields));
}

std::vector<std::string> cells(const RunRow& row) {
  const RunSummary& run = row.summary;
  const auto maybe = [](const std::optional<double>& number) {
    return number ? fmt::format("{:.4f}", *number) : std::string("-");
  };
  return {run.run,
          name_of(run.state),
          run.since.substr(0, 19),
          with_commas(run.step),
          with_commas(run.tokens),
          maybe(run.loss),
          maybe(run.bits_per_byte),
          to_string(row.seconds)};
}

// For a run whose cluster cannot be queried now.
std::string last_seen(const SubmittedRow& row) {
  if (!row.stale) return "";
  return row.seen_at == 0 ? "never" : to_iso8601(std::chrono::system_clock::from_time_t(row.seen_at)).substr(0, 19);
}

std::vector<std::string> cells(const SubmittedRow& row) {
  const RunSummary& run = row.summary;
  std::string price = row.node_seconds == 0 ? "0.00" : run.cost ? fmt::format("{:.2f}", run.cost->count()) : "unknown";
  if (run.budget) price += fmt::format(" of {:.2f}", run.budget->count());
  return {run.run,
          run.target + " " + run.id,
          name_of(run.state),
          run.since.substr(0, 19),
          row.nodes.empty() ? "-" : row.nodes,
          std::to_string(row.restarts),
          fmt::format("{:.2f}", row.node_seconds / 3600),
          price,
          last_seen(row),
          run.problem};
}

void show_table(const std::vector<RunRow>& runs, Context& context) {
  std::vector<std::vector<std::string>> rows;
  for (const RunRow& run : runs) rows.push_back(cells(run));
  context.out.data(table({"run", "state", "started (UTC)", "steps>", "tokens>", "loss>", "bits/byte>", "time>"}, rows,
                         context.out.width()));
}

void show_table(const std::vector<SubmittedRow>& submitted, Context& context) {
  std::vector<std::vector<std::string>> rows;
  for (const SubmittedRow& row : submitted) rows.push_back(cells(row));
  std::vector<std::string> heads{"submitted", "as",          "state",    "at (UTC)",   "on",
                                 "again>",    "node hours>", "dollars>", "seen (UTC)", ""};
  if (std::ranges::none_of(submitted, &SubmittedRow::stale)) {
    const auto seen = static_cast<std::ptrdiff_t>(heads.size()) - 2;
    heads.erase(heads.begin() + seen);
    for (std::vector<std::string>& row : rows) row.erase(row.begin() + seen);
  }
  context.out.data("\n" + table(heads, rows, context.out.width()));
}

Node document(const std::vector<RunRow>& runs, const std::vector<SubmittedRow>& submitted,
              const std::vector<Error>& refused) {
  std::vector<Node> of_runs, of_submitted, of_refused;
  of_runs.reserve(runs.size());
  for (const RunRow& run : runs) of_runs.push_back(node_of(run));
  of_submitted.reserve(submitted.size());
  for (const SubmittedRow& row : submitted) of_submitted.push_back(to_node(row));
  for (const Error& one : refused) of_refused.push_back(error_node(one));
  Node document = Node::map();
  document.set("runs", Node::sequence(std::move(of_runs)));
  document.set("submitted", Node::sequence(std::move(of_submitted)));
  return std::move(document.set("refused", Node::sequence(std::move(of_refused))));
}

ExitCode check_audit(const std::string& folder, Context& context) {
  const AuditCheck check = verify_audit_of(folder);
  context.out.data(fmt::format("{}, each holds; the last is {:.12}", counted(check.lines, "line"), check.last));
  context.out.json(Node::map({{"lines", check.lines}, {"last", check.last}}));
  return ExitCode::done;
}

ExitCode runs(const RunsOptions& options, Context& context) {
  if (options.verify_audit) return check_audit(options.folder, context);
  const FollowScene scene = follow_scene_of(context, options.folder);
  if (!options.on.empty()) {
    const JobTargetRow* target = find_job_target_row(options.on);  // adopt_runs refuses one that is not there
    if (target != nullptr && !target->adopts)
      fail(option_lacks(*target, &JobTargetRow::adopts, "--on", "without --on, those that were submitted from here"));
    for (const Record& record : adopt_runs(options.on, {{"context", options.context}}, scene))
      context.out.message(fmt::format("{}: found on {}, submitted by {}", record.run, record.target, record.by));
  }
  const auto store = open_posix_store(options.folder);
  if (!store.ok() && store.error().kind == ErrorKind::io) fail(store.error());
  if (!store.ok() && options.folder != kRunsFolder) {
    fail(error(ErrorKind::not_found, "'{}' is no folder of runs", options.folder)
             .hinted("without a name it is 'runs', in the folder the command runs in"));
  }
  if (!store.ok()) {
    context.out.message(fmt::format("no runs yet: there is no folder '{}'", options.folder));
    context.out.json(document({}, {}, {}));
    return ExitCode::done;
  }
  const bool json = context.out.json();
  std::future<Result<SubmittedFiles>> submitted_there = submitted_files(scene.folder);
  IndexedRuns index = indexed_runs(**store, {.rebuild = options.rebuild, .with_jobs = json}, scene);
  for (Error one : index.refused) {
    one.message = "a run is passed over: " + one.message;
    context.out.warning(one);
  }
  for (const RunRow& row : index.runs)
    if (const std::optional<Error> damage = damage_of(row, options.folder)) context.out.warning(*damage);
  for (RunRow& row : index.runs)
    row.summary.state = state_now(row.summary.state, options.folder + "/" + row.summary.run);
  if (index.runs.empty()) context.out.message("no runs yet");
  if (!json && !index.runs.empty()) show_table(index.runs, context);
  const std::vector<SubmittedRow> submitted =
      submitted_rows(submitted_there.get().value(), std::move(index.before), index.submitted, scene);
  if (!json && !submitted.empty()) show_table(submitted, context);
  if (json) context.out.json(document(index.runs, submitted, index.refused));
  return ExitCode::done;
}

}  // namespace

void add_runs(Subcommand app, Context& context) {
  auto options = std::make_shared<RunsOptions>();
  Subcommand command = add_command(app, "runs", "the runs there are, newest first", options, context, runs);
  command.add_option("folder", options->folder, "the folder of runs").capture_default_str();
  command.add_option("--on", options->on,
                     fmt::format("also those that were submitted to this cluster from elsewhere: {}",
                                 fmt::join(job_targets_that(&JobTargetRow::adopts), ", ")));
  command.add_option("--context", options->context, "which cluster of the kubeconfig; without: its current context");
  command.add_flag("--rebuild", options->rebuild, "make the index anew from the folders");
  command.add_flag("--verify-audit", options->verify_audit, "hold what was done on clusters to its chain of hashes");
}

}  // namespace systole::cli
