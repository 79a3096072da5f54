// `systole runs`: the runs there are, newest first, out of the index; --rebuild makes the index anew from the folders.
// Then those that were submitted to a cluster, as it sees them.

#include <algorithm>
#include <functional>
#include <map>

#include "ground/base/units.h"
#include "ground/store/lock.h"
#include "operate/cli/cluster_runs.h"
#include "operate/observe/index.h"

namespace systole::cli {
namespace {

struct RunsOptions {
  std::string folder = kRunsFolder;
  std::string on, context;
  bool rebuild = false, verify_audit = false;
};

// A run whose last process says nothing of its end: it still holds the folder, or it was killed.
std::string state_now(const RunRow& row, const std::string& folder) {
  if (row.state != "open") return row.state;
  const auto lock = lock_folder(folder + "/" + row.folder);
  return !lock.ok() && lock.error().kind == ErrorKind::busy ? "running" : "killed";
}

Node node_of(const RunRow& row, const std::string& state) {
  const auto maybe = [](const std::optional<double>& number) { return number ? Node(*number) : Node(); };
  return Node::map({{"folder", row.folder},
                    {"name", row.name},
                    {"state", state},
                    {"started_at", row.started_at},
                    {"opened_at", row.opened_at},
                    {"steps", row.steps},
                    {"tokens", row.tokens},
                    {"processes", row.processes},
                    {"parameters", row.parameters},
                    {"loss", maybe(row.loss)},
                    {"bits_per_byte", maybe(row.bits_per_byte)},
                    {"seconds_s", row.seconds.count()}});
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

// The same of many clusters: each is asked once. One that cannot be asked is a warning, and its runs are unknown.
std::vector<std::vector<Seen>> look_at(const std::vector<Record>& records, Context& context) {
  const auto context_of = [](const Record& record) {
    const auto found = record.where.find("context");
    return found == record.where.end() ? std::string() : found->second;
  };
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> by_target;
  for (std::size_t i = 0; i < records.size(); ++i) by_target[{records[i].target, context_of(records[i])}].push_back(i);
  std::vector<std::vector<Seen>> seen(records.size());
  for (const auto& [there_is, at] : by_target) {
    const std::string& target = there_is.first;
    std::vector<Record> of_target;
    for (const std::size_t i : at) of_target.push_back(records[i]);
    const auto look_there = [&]() -> Result<std::vector<std::vector<Seen>>> {
      return systole::look(*TRY(open_cluster(target, of_target[0].where)), of_target);
    };
    Result<std::vector<std::vector<Seen>>> there = look_there();
    if (!there.ok()) context.out.warning(there.error());
    for (std::size_t i = 0; there.ok() && i < at.size(); ++i) seen[at[i]] = std::move((*there)[i]);
  }
  return seen;
}

std::vector<std::string> cells(const Record& record, const Seen& seen, Clock& clock) {
  const Used used = used_by(record, clock);
  const std::string price = used.dollars ? fmt::format("{:.2f}", *used.dollars) : "unknown";
  return {record.run,
          record.target + " " + record.id,
          name_of(seen.phase),
          record.submitted_at.substr(0, 19),
          seen.nodes.empty() ? "-" : seen.nodes,
          std::to_string(seen.restarts),
          fmt::format("{:.2f}", used.node_seconds / 3600),
          used.node_seconds == 0 ? "0.00" : price,
          seen.reason};
}

// The runs that were submitted from there, newest first.
Node show_submitted(const std::string& folder, Context& context) {
  Node list = Node::sequence();
  std::optional<Submissions> submissions = Submissions::open_if_there(folder).value();
  if (!submissions) return list;
  std::vector<Record> records = submissions->list().value();
  std::ranges::stable_sort(records, std::greater(), &Record::submitted_at);
  const std::vector<std::vector<Seen>> seen = look_at(records, context);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < records.size(); ++i) {
    list.push(run_node(records[i], seen[i], context.clock));
    rows.push_back(cells(records[i], overall(seen[i]), context.clock));
  }
  if (!rows.empty())
    context.out.data(
        "\n" + table({"submitted", "as", "state", "at (UTC)", "on", "again>", "node hours>", "dollars>", ""}, rows));
  return list;
}

ExitCode check_audit(const std::string& folder, Context& context) {
  std::optional<Submissions> submissions = Submissions::open_if_there(folder).value();
  if (!submissions)
    fail(error(ErrorKind::not_found, "nothing was ever submitted from '{}'", folder)
             .hinted("systole submit WORKLOAD --on slurm begins the audit"));
  std::vector<std::string> known;
  for (const Record& record : submissions->list().value()) known.push_back(record.audit);
  const AuditCheck check = verify_audit(submissions->path(), known).value();
  context.out.data(fmt::format("{} lines, each holds; the last is {:.12}", check.lines, check.last));
  context.out.json(Node::map({{"lines", check.lines}, {"last", check.last}}));
  return ExitCode::done;
}

// Those that others submitted to that cluster get a record here.
void adopt_from(const RunsOptions& options, Context& context) {
  const std::unique_ptr<Cluster> cluster = open_cluster(options.on, {{"context", options.context}}).value();
  Submissions submissions = Submissions::open(options.folder).value();
  Audit audit(submissions.path(), context.clock);
  for (const Record& record : adopt(*cluster, {submissions, audit, context.clock}).value())
    context.out.message(fmt::format("{}: found on {}, submitted by {}", record.run, record.target, record.by));
}

ExitCode runs(const RunsOptions& options, Context& context) {
  if (options.verify_audit) return check_audit(options.folder, context);
  if (!options.on.empty()) adopt_from(options, context);
  const auto store = open_posix_store(options.folder);
  if (!store.ok() && options.folder != kRunsFolder) {
    fail(error(ErrorKind::not_found, "'{}' is no folder of runs", options.folder)
             .hinted("without a name it is 'runs', in the folder the command runs in"));
  }
  if (!store.ok()) {
    context.out.message(fmt::format("no runs yet: there is no folder '{}'", options.folder));
    context.out.json(Node::map({{"runs", Node::sequence()}, {"submitted", Node::sequence()}}));
    return ExitCode::done;
  }
  RunIndex index = RunIndex::open(options.folder + "/index.sqlite").value();
  if (options.rebuild) {
    const int count = index.rebuild(**store).value();
    context.out.message(fmt::format("read {} run{} out of their folders", count, count == 1 ? "" : "s"));
  } else {
    index.refresh(**store).value();
  }
  Node list = Node::sequence();
  std::vector<std::vector<std::string>> rows;
  const std::vector<RunRow> all = index.list().value();
  for (const RunRow& row : all) {
    const std::string state = state_now(row, options.folder);
    list.push(node_of(row, state));
    rows.push_back(cells(row, state));
  }
  if (rows.empty())
    context.out.message("no runs yet");
  else
    context.out.data(
        table({"run", "state", "started (UTC)", "steps>", "tokens>", "loss>", "bits/byte>", "time>"}, rows));
  const Node submitted = show_submitted(options.folder, context);
  context.out.json(Node::map({{"runs", list}, {"submitted", submitted}}));
  return ExitCode::done;
}

}  // namespace

void add_runs(CLI::App& app, Context& context) {
  auto options = std::make_shared<RunsOptions>();
  CLI::App& command = add_command(app, "runs", "the runs there are, newest first", options, context, runs);
  command.add_option("folder", options->folder, "the folder of runs")->capture_default_str();
  command.add_option("--on", options->on, "also those that were submitted to this cluster from elsewhere: kubernetes");
  command.add_option("--context", options->context, "which cluster of the kubeconfig; without: its current context");
  command.add_flag("--rebuild", options->rebuild, "make the index anew from the folders");
  command.add_flag("--verify-audit", options->verify_audit, "hold what was done on clusters to its chain of hashes");
}

}  // namespace systole::cli
