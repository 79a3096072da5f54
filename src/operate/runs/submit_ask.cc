#include "operate/runs/submit_ask.h"

#include <algorithm>

#include "ground/base/files.h"

namespace systole {
namespace {

// A larger budget is the same workload, rendered again; any other change makes another run.
SubmitRequest with_budget(ClusterRun& run, const std::vector<std::string>& sets) {
  const Record& record = run.record;
  if (!path_exists(record.place + "/workload.yaml"))
    fail(error(ErrorKind::not_found, "what '{}' was rendered from is where {} submitted it", record.run, record.by)
             .hinted(fmt::format("systole resume {} --set ... there", record.run)));
  RenderArguments from{.on = record.target, .run = record.run};
  from.workload.command = from.workload.kept = true;
  from.workload.sets = sets;
  (record.plan_sha256.empty() ? from.workload.path : from.plan) =
      record.place + (record.plan_sha256.empty() ? "/workload.yaml" : "/plan.json");
  const RenderedJob job = render_job(from, "resume", [&](const std::string&) { return record.place + "/files"; });
  SubmitRequest ask = ask_of(job, *run.cluster);
  ask.record.from = record.from;
  return ask;
}

// Without budget left it would end at once.
void check_budget(ClusterRun& run, Dollars budget, Clock& clock) {
  const Record& record = run.record;
  const RunStatus status = run.query();
  const Dollars used = summarize(record, status, clock.unix_time()).cost.value_or(Dollars());
  const Dollars stopped_at =
      status.overall().state == RunState::budget_used ? record.budget.value_or(Dollars()) : Dollars();
  if (budget > std::max(used, stopped_at)) return;
  fail(error(ErrorKind::invalid, "the run '{}' has cost {}, and its budget is {}", record.run, to_string(used),
             to_string(budget))
           .hinted(fmt::format("systole resume {} --set objective.budget={:.2f}", record.run,
                               2 * std::max(used, stopped_at).count())));
}

}  // namespace

SubmitRequest ask_of(const RenderedJob& job, const ClusterClient& cluster) {
  SubmitRequest ask{.files = job.rendered.files, .sources = job.sources, .program = "/proc/self/exe"};
  Record& record = ask.record;
  record.run = job.rendered.run;
  record.target = cluster.name();
  record.from = working_folder().value();
  record.folder = job.rendered.folder;
  record.where = job.rendered.where;
  record.where.merge(cluster.where());  // unless the rendering has already fixed it
  record.array = job.rendered.array;
  record.workload_sha256 = job.workload_sha256;
  record.plan_sha256 = job.plan_sha256;
  record.program_sha256 = job.program_sha256;
  record.usd_per_hour = job.rendered.usd_per_hour;
  record.budget = job.workload.objective.budget;
  return ask;
}

SubmitRequest ask_again(ClusterRun& run, const std::vector<std::string>& sets, Clock& clock) {
  SubmitRequest ask{.record = run.record, .program = run.record.program};
  if (!sets.empty()) ask = with_budget(run, sets);
  ask.again = true;
  ask.record.after.clear();
  if (ask.record.budget) check_budget(run, *ask.record.budget, clock);
  return ask;
}

}  // namespace systole
