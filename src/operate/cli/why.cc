// `systole why [RUN]`: predicted times against measured ones.

#include "operate/observe/why.h"

#include "describe/spec/run_summary.h"
#include "operate/cli/command.h"
#include "operate/observe/rank_report.h"
#include "operate/run/run_places.h"

namespace systole::cli {
namespace {

struct WhyOptions {
  std::string run;
};

ExitCode explain_run(const WhyOptions& options, Context& context) {
  const RunPlace place = open_run(options.run).value();
  const RunRecord record = record_of(place).value();
  const Result<Workload> workload = record.plan ? record.plan->workload : workload_of(place);
  if (!record.plan && workload.ok() && !workload->command.empty()) {
    const RunSummary summary = summarize(record.processes, nullptr);
    fail(error(ErrorKind::unsupported, "'{}' is of a program of your own, of which nothing was predicted{}", place.path,
               is_over(summary.state) ? "; it ended so: " + summary.problem : "")
             .hinted(fmt::format("its output is in {0}/logs; systole runs shows its state", place.path)));
  }
  if (!record.plan)
    fail(error(ErrorKind::not_found, "'{}' has no plan.json to hold it against", place.path)
             .hinted("systole logs shows its events"));
  WhyReport report = systole::why(*record.plan, record.processes, record.spans);
  report.state = state_now(report.state, place.path);
  const RanksReport ranks = report_ranks(*place.store, "").value();
  context.out.prose(to_text(report) + to_text(ranks));
  Node document = to_node(report);
  if (!ranks.empty()) document.set("many_ranks", to_node(ranks));
  context.out.json(document);
  return ExitCode::done;
}

}  // namespace

void add_why(Subcommand app, Context& context) {
  auto options = std::make_shared<WhyOptions>();
  Subcommand command = add_command(app, "why", "where a run's time and memory went, against what was predicted",
                                   options, context, explain_run);
  command.add_option("run", options->run, "a run's folder, name or number; without: the newest");
}

}  // namespace systole::cli
