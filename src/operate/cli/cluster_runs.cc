#include "operate/cli/cluster_runs.h"

#include <filesystem>

#include "ground/base/nearest.h"

namespace systole::cli {

std::string ClusterRun::folder(const std::string& task) const {
  const std::filesystem::path path = std::filesystem::path(record.from) / record.folder;
  return path.lexically_normal().string() + (task.empty() ? "" : "." + task);
}

std::unique_ptr<ClusterRun> cluster_run_if_any(const std::string& run, Context& context) {
  std::optional<Submissions> submissions = Submissions::open_if_there(kRunsFolder).value();
  if (!submissions || run.empty() || run.find('/') != run.npos || run.starts_with('.')) return nullptr;
  std::optional<Record> record = submissions->find(run).value();
  if (!record) return nullptr;
  std::unique_ptr<Cluster> cluster = open_cluster(record->target, record->where).value();
  return std::make_unique<ClusterRun>(std::move(*submissions), std::move(*record), std::move(cluster), context.clock);
}

std::unique_ptr<ClusterRun> cluster_run(const std::string& run, Context& context) {
  if (std::unique_ptr<ClusterRun> found = cluster_run_if_any(run, context)) return found;
  std::vector<std::string> names;
  if (std::optional<Submissions> submissions = Submissions::open_if_there(kRunsFolder).value())
    for (const Record& record : submissions->list().value()) names.push_back(record.run);
  fail(error(ErrorKind::not_found, "no run '{}' was submitted from here", run)
           .hinted(names.empty()
                       ? "systole submit WORKLOAD --on TARGET; systole runs --on kubernetes finds those of others"
                       : nearest_hint(run, names)));
}

std::string told(const Record& record, const Seen& seen) {
  std::string text = name_of(seen.phase);
  if (!record.id.empty()) text += fmt::format(" as {} job {}", record.target, record.id);
  if (!seen.nodes.empty() && !is_over(seen.phase)) text += " on " + seen.nodes;
  if (seen.restarts > 0) text += fmt::format(", begun again {} time{}", seen.restarts, seen.restarts == 1 ? "" : "s");
  if (!seen.reason.empty()) text += ": " + seen.reason;
  return text;
}

Used used_by(const Record& record, Clock& clock) {
  Used used;
  const Result<std::unique_ptr<Store>> store = open_posix_store(record.place);
  if (!store.ok()) return used;
  const Result<std::string> text = read_text(**store, "ledger");
  const std::vector<LedgerTurn> turns = text.ok() ? read_ledger(*text) : std::vector<LedgerTurn>();
  const std::int64_t now = std::chrono::system_clock::to_time_t(clock.calendar());
  used.node_seconds = node_seconds(turns, now);
  if (record.usd_per_hour) used.dollars = *record.usd_per_hour * allocated_seconds(turns, now) / 3600;
  return used;
}

Node run_node(const Record& record, std::span<const Seen> jobs, Clock& clock) {
  const Seen seen = overall(jobs);
  const Used used = used_by(record, clock);
  Node list = Node::sequence();
  for (const Seen& job : jobs) {
    Node entry = Node::map({{"id", job.id}, {"state", name_of(job.phase)}, {"reason", job.reason}});
    entry.set("nodes", job.nodes).set("restarts", job.restarts).set("began_at", job.began_at);
    list.push(entry.set("ended_at", job.ended_at));
  }
  Node node = Node::map({{"run", record.run}, {"target", record.target}, {"id", record.id}});
  node.set("state", name_of(seen.phase)).set("reason", seen.reason).set("folder", record.folder);
  node.set("submitted_at", record.submitted_at).set("by", record.by).set("node_seconds", used.node_seconds);
  return node.set("dollars", used.dollars ? Node(*used.dollars) : Node()).set("jobs", list);
}

}  // namespace systole::cli
