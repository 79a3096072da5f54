// `systole why [RUN]`: predicted against measured.

#include "operate/observe/why.h"

#include "operate/cli/command.h"
#include "operate/cli/run_places.h"
#include "operate/observe/rank_report.h"

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
    const std::vector<Event> events = record.all();
    const auto* stopped = events.empty() ? nullptr : std::get_if<Stopped>(&events.back().body);
    fail(error(ErrorKind::unsupported, "'{}' is of a program of your own, of which nothing was predicted{}", place.path,
               stopped != nullptr ? "; it ended so: " + stopped->detail : "")
             .hinted(fmt::format("its output is in {0}/logs; systole runs shows its state", place.path)));
  }
  if (!record.plan)
    fail(error(ErrorKind::not_found, "'{}' has no plan.json to hold it against", place.path)
             .hinted("systole logs shows its events"));
  const WhyReport report = systole::why(*record.plan, record.processes, record.spans);
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
