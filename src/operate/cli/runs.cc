// `systole runs`: the runs there are, newest first, out of the index; --rebuild makes the index anew from the folders.
// Then those that were submitted to a cluster, as it sees them.

#include <algorithm>
#include <chrono>

#include "ground/base/counted.h"
#include "ground/base/units.h"
#include "ground/store/lock.h"
#include "operate/cli/cluster_runs.h"
#include "operate/cli/submitted_rows.h"
#include "operate/observe/index.h"
#include "operate/observe/index_tables.h"

namespace systole::cli {
namespace {

struct RunsOptions {
  std::string folder = kRunsFolder;
  std::string on, context;
  bool rebuild = false, verify_audit = false;
};

// A run whose last process says nothing of its end: it still holds the folder, or it was killed. Who may not write
// there cannot tell.
std::string state_now(const RunRow& row, const std::string& folder) {
  if (row.state != "open") return row.state;
  const auto lock = lock_folder(folder + "/" + row.folder);
  if (lock.ok()) return "killed";
  return lock.error().kind == ErrorKind::busy ? "running" : "unknown";
}

Node node_of(const RunRow& row, const std::string& state) {
  const auto maybe = [](const std::optional<double>& number) { return number ? Node(*number) : Node(); };
  std::vector<Node::Entry> fields;  // filled in place: a list in braces is copied
  fields.reserve(12);
  for (const auto& [key, text] : {std::pair("folder", &row.folder),
                                  {"name", &row.name},
                                  {"state", &state},
                                  {"started_at", &row.started_at},
                                  {"opened_at", &row.opened_at}})
    fields.push_back({key, *text});
  for (const auto& [key, count] : {std::pair("steps", row.steps),
                                   {"tokens", row.tokens},
                                   {"processes", row.processes},
                                   {"parameters", row.parameters}})
    fields.push_back({key, count});
  fields.push_back({"loss", maybe(row.loss)});
  fields.push_back({"bits_per_byte", maybe(row.bits_per_byte)});
  fields.push_back({"seconds_s", row.seconds.count()});
  return Node::map(std::move(fields));
}

std::vector<std::string> cells(const RunRow& row, const std::string& state) {
  const auto maybe = [](const std::optional<double>& number) {
    return number ? fmt::format("{:.4f}", *number) : std::string("-");
  };
  return {row.folder,
          state,
          row.started_at.substr(0, 19),
          with_commas(row.steps),
          with_commas(row.tokens),
          maybe(row.loss),
          maybe(row.bits_per_byte),
          to_string(row.seconds)};
}

// Of one whose cluster cannot be asked now.
std::string last_seen(const SubmittedRow& row) {
  if (!row.stale) return "";
  return row.seen_at == 0 ? "never" : to_iso8601(std::chrono::system_clock::from_time_t(row.seen_at)).substr(0, 19);
}

std::vector<std::string> cells(const SubmittedRow& row) {
  std::string price = row.node_seconds == 0 ? "0.00" : row.dollars ? fmt::format("{:.2f}", *row.dollars) : "unknown";
  if (row.budget) price += fmt::format(" of {:.2f}", *row.budget);
  return {row.run,
          row.target + " " + row.id,
          row.state,
          row.submitted_at.substr(0, 19),
          row.nodes.empty() ? "-" : row.nodes,
          std::to_string(row.restarts),
          fmt::format("{:.2f}", row.node_seconds / 3600),
          price,
          last_seen(row),
          row.reason};
}

void show_table(const std::vector<RunRow>& runs, const std::vector<std::string>& states, Context& context) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) rows.push_back(cells(runs[i], states[i]));
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

Node document(const std::vector<RunRow>& runs, const std::vector<std::string>& states,
              const std::vector<SubmittedRow>& submitted) {
  std::vector<Node> of_runs, of_submitted;
  of_runs.reserve(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) of_runs.push_back(node_of(runs[i], states[i]));
  of_submitted.reserve(submitted.size());
  for (const SubmittedRow& row : submitted) of_submitted.push_back(cli::node_of(row));
  Node document = Node::map();
  document.set("runs", Node::sequence(std::move(of_runs)));
  return std::move(document.set("submitted", Node::sequence(std::move(of_submitted))));
}

struct Indexed {  // what the index has, of now
  std::vector<RunRow> runs;
  SubmittedIndex submitted;
  std::vector<SubmittedRow> before;
  std::vector<Error> refused;  // runs that cannot be read
};

Result<Indexed> read_index(const RunsOptions& options, const std::string& file, Store& store, Context& context) {
  RunIndex index = TRY(RunIndex::open(file));
  SubmittedIndex submitted = TRY(SubmittedIndex::open(file));
  std::vector<Error> refused;
  if (options.rebuild) {
    const int count = TRY(index.rebuild(store, &refused));
    context.out.message(fmt::format("read {} out of their folders", counted(count, "run")));
  } else {
    TRY(index.refresh(store, &refused));
  }
  std::vector<SubmittedRow> before = TRY(submitted.list(context.out.json()));
  if (options.rebuild)  // what is over is asked about again; what was seen of the others is nowhere else
    for (SubmittedRow& row : before) row.over = false;
  return Indexed{TRY(index.list()), std::move(submitted), std::move(before), std::move(refused)};
}

// It is derived: one that does not read is made anew.
Indexed index_of(const RunsOptions& options, Store& store, Context& context) {
  const std::string file = options.folder + "/index.sqlite";
  Result<Indexed> index = read_index(options, file, store, context);
  if (index.ok() || index.error().kind != ErrorKind::corrupt) return std::move(index).value();
  context.out.message(fmt::format("'{}' is damaged and is made anew", file));
  clear_index(file).value();
  return read_index(options, file, store, context).value();
}

ExitCode check_audit(const std::string& folder, Context& context) {
  std::optional<Submissions> submissions = Submissions::open_if_there(folder).value();
  if (!submissions)
    fail(error(ErrorKind::not_found, "nothing was ever submitted from '{}'", folder)
             .hinted("systole submit WORKLOAD --on slurm begins the audit"));
  std::vector<std::string> known;
  for (const Record& record : submissions->list().value()) known.push_back(record.audit);
  const AuditCheck check = verify_audit(submissions->path(), known).value();
  context.out.data(fmt::format("{}, each holds; the last is {:.12}", counted(check.lines, "line"), check.last));
  context.out.json(Node::map({{"lines", check.lines}, {"last", check.last}}));
  return ExitCode::done;
}

// Those that others submitted to that cluster get a record here.
void adopt_from(const RunsOptions& options, Context& context) {
  const std::unique_ptr<ClusterClient> cluster =
      open_cluster(options.on, {{"context", options.context}}, context.out).value();
  Submissions submissions = Submissions::open(options.folder).value();
  Audit audit(submissions.path(), context.clock);
  for (const Record& record : adopt(*cluster, {submissions, audit, context.clock}).value())
    context.out.message(fmt::format("{}: found on {}, submitted by {}", record.run, record.target, record.by));
}

ExitCode runs(const RunsOptions& options, Context& context) {
  if (options.verify_audit) return check_audit(options.folder, context);
  if (!options.on.empty()) adopt_from(options, context);
  const auto store = open_posix_store(options.folder);
  if (!store.ok() && store.error().kind == ErrorKind::io) fail(store.error());
  if (!store.ok() && options.folder != kRunsFolder) {
    fail(error(ErrorKind::not_found, "'{}' is no folder of runs", options.folder)
             .hinted("without a name it is 'runs', in the folder the command runs in"));
  }
  if (!store.ok()) {
    context.out.message(fmt::format("no runs yet: there is no folder '{}'", options.folder));
    context.out.json(Node::map({{"runs", Node::sequence()}, {"submitted", Node::sequence()}}));
    return ExitCode::done;
  }
  Indexed index = index_of(options, **store, context);
  for (Error& one : index.refused) {
    one.message = "a run is passed over: " + one.message;
    context.out.warning(one);
  }
  std::vector<std::string> states;
  for (const RunRow& row : index.runs) states.push_back(state_now(row, options.folder));
  const bool json = context.out.json();
  if (index.runs.empty()) context.out.message("no runs yet");
  if (!json && !index.runs.empty()) show_table(index.runs, states, context);
  const std::vector<SubmittedRow> submitted =
      submitted_rows(options.folder, std::move(index.before), index.submitted, context);
  if (!json && !submitted.empty()) show_table(submitted, context);
  if (json) context.out.json(document(index.runs, states, submitted));
  return ExitCode::done;
}

}  // namespace

void add_runs(Subcommand app, Context& context) {
  auto options = std::make_shared<RunsOptions>();
  Subcommand command = add_command(app, "runs", "the runs there are, newest first", options, context, runs);
  command.add_option("folder", options->folder, "the folder of runs").capture_default_str();
  command.add_option("--on", options->on, "also those that were submitted to this cluster from elsewhere: kubernetes");
  command.add_option("--context", options->context, "which cluster of the kubeconfig; without: its current context");
  command.add_flag("--rebuild", options->rebuild, "make the index anew from the folders");
  command.add_flag("--verify-audit", options->verify_audit, "hold what was done on clusters to its chain of hashes");
}

}  // namespace systole::cli
