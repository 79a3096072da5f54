#include "operate/cli/cluster_runs.h"

#include <chrono>
#include <filesystem>

#include "ground/base/counted.h"
#include "ground/base/nearest.h"

namespace systole::cli {

std::string ClusterRun::folder(const std::string& task) const {
  const std::filesystem::path path = std::filesystem::path(record.from) / record.folder;
  return path.lexically_normal().string() + (task.empty() ? "" : "." + task);
}

Result<std::unique_ptr<ClusterClient>> open_cluster(std::string_view target, const ClusterClient::Whereabouts& where,
                                                    Printer& out) {
  std::unique_ptr<ClusterClient> cluster = TRY(systole::open_cluster(target, where));
  if (const std::optional<Error> doubt = cluster->doubt()) out.warning(*doubt);
  return cluster;
}

std::unique_ptr<ClusterRun> cluster_run_if_any(const std::string& run, Context& context) {
  std::optional<Submissions> submissions = Submissions::open_if_there(kRunsFolder).value();
  if (!submissions || run.empty() || run.find('/') != run.npos || run.starts_with('.')) return nullptr;
  std::optional<Record> record = submissions->find(run).value();
  if (!record) return nullptr;
  std::unique_ptr<ClusterClient> cluster = open_cluster(record->target, record->where, context.out).value();
  return std::make_unique<ClusterRun>(std::move(*submissions), std::move(*record), std::move(cluster), context.clock);
}

std::unique_ptr<ClusterRun> cluster_run(const std::string& run, Context& context) {
  if (std::unique_ptr<ClusterRun> found = cluster_run_if_any(run, context)) return found;
  std::vector<std::string> names;
  if (std::optional<Submissions> submissions = Submissions::open_if_there(kRunsFolder).value()) {
    names = submissions->names().value();
    std::erase_if(names, [&](const std::string& name) {  // of a submission that failed a folder may be left
      const Result<std::optional<Record>> record = submissions->find(name);
      return record.ok() && !*record;
    });
  }
  fail(error(ErrorKind::not_found, "no run '{}' was submitted from here", run)
           .hinted(names.empty()
                       ? "systole submit WORKLOAD --on TARGET; systole runs --on kubernetes finds those of others"
                       : nearest_hint(run, names)));
}

std::string told(const Record& record, const Seen& seen) {
  std::string text = name_of(seen.phase);
  if (!record.id.empty()) text += fmt::format(" as {} job {}", record.target, record.id);
  if (!seen.nodes.empty() && !is_over(seen.phase)) text += " on " + seen.nodes;
  if (seen.restarts > 0) text += fmt::format(", begun again {}", counted(seen.restarts, "time"));
  if (!seen.reason.empty()) text += ": " + seen.reason;
  return text;
}

Used used_by(const Record& record, std::span<const Seen> jobs, Clock& clock) {
  Used used;
  const Result<std::string> text = ledger_text(ledger_of(record));
  std::vector<LedgerTurn> turns = text.ok() ? read_ledger(*text) : std::vector<LedgerTurn>();
  end_by(turns, jobs);
  const std::int64_t now = std::chrono::system_clock::to_time_t(clock.calendar());
  used.goes_on = goes_on(turns);
  used.node_seconds = node_seconds(turns, now);
  if (record.usd_per_hour) used.dollars = *record.usd_per_hour * allocated_seconds(turns, now) / 3600;
  return used;
}

SubmittedRow row_of(const Record& record, std::span<const Seen> jobs, const Used& used) {
  const Seen seen = overall(jobs);
  SubmittedRow row{.run = record.run, .target = record.target, .id = record.id};
  row.state = name_of(seen.phase);
  row.reason = seen.reason;
  row.nodes = seen.nodes;
  row.restarts = seen.restarts;
  row.folder = record.folder;
  row.submitted_at = record.submitted_at;
  row.by = record.by;
  row.node_seconds = used.node_seconds;
  row.dollars = used.dollars;
  row.budget = record.budget;
  for (const Seen& job : jobs)
    row.jobs.push_back({job.id, name_of(job.phase), job.reason, job.nodes, job.restarts, job.began_at, job.ended_at});
  return row;
}

// Filled in place, each list once: one in braces is copied, and there may be tens of thousands of rows.
Node node_of(const SubmittedJob& job) {
  std::vector<Node::Entry> fields;
  fields.reserve(7);
  for (const auto& [key, text] :
       {std::pair("id", &job.id), {"state", &job.state}, {"reason", &job.reason}, {"nodes", &job.nodes}})
    fields.push_back({key, *text});
  fields.push_back({"restarts", job.restarts});
  fields.push_back({"began_at", job.began_at});
  fields.push_back({"ended_at", job.ended_at});
  return Node::map(std::move(fields));
}

Node node_of(const SubmittedRow& row) {
  std::vector<Node> jobs;
  jobs.reserve(row.jobs.size());
  for (const SubmittedJob& job : row.jobs) jobs.push_back(node_of(job));
  std::vector<Node::Entry> fields;
  fields.reserve(13);
  for (const auto& [key, text] : {std::pair("run", &row.run),
                                  {"target", &row.target},
                                  {"id", &row.id},
                                  {"state", &row.state},
                                  {"reason", &row.reason},
                                  {"folder", &row.folder},
                                  {"submitted_at", &row.submitted_at},
                                  {"by", &row.by}})
    fields.push_back({key, *text});
  fields.push_back({"node_seconds", row.node_seconds});
  fields.push_back({"dollars", row.dollars ? Node(*row.dollars) : Node()});
  fields.push_back({"budget", row.budget ? Node(*row.budget) : Node()});
  const bool before = row.stale && row.seen_at != 0;
  fields.push_back(
      {"seen_at", before ? Node(to_iso8601(std::chrono::system_clock::from_time_t(row.seen_at))) : Node()});
  fields.push_back({"jobs", Node::sequence(std::move(jobs))});
  return Node::map(std::move(fields));
}

Node run_node(const Record& record, std::span<const Seen> jobs, Clock& clock) {
  return node_of(row_of(record, jobs, used_by(record, jobs, clock)));
}

}  // namespace systole::cli
