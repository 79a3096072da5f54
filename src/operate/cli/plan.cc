// `systole plan WORKLOAD`: predicts time and memory of running it on this machine, before anything runs; with --on,
// chooses among offered hardware, and a layout. Of workload: serve: what serving it takes (plan_serve.h).

#include <cmath>

#include "ground/base/text_file.h"
#include "ground/store/store.h"
#include "operate/check/lint.h"
#include "operate/cli/mixture_table.h"
#include "operate/cli/plan_on.h"
#include "operate/cli/plan_serve.h"
#include "operate/cli/workload_options.h"
#include "operate/render/quote.h"
#include "operate/run/built_data.h"
#include "operate/run/file_lint.h"
#include "operate/run/origin.h"
#include "operate/run/rank_threads.h"
#include "operate/run/xla_machine.h"
#include "predict/perf/predicted_peak.h"
#include "predict/plan/plan_text.h"

namespace systole::cli {
namespace {

struct PlanOptions {
  WorkloadArguments workload;
  std::string out;
  PlanOnOptions on;
};

// The known error of such predictions.
std::string error_text(const Plan& plan, bool xla) {
  if (plan.time.unknown) return "";
  const std::string off = "how far off these times are ";
  if (xla)
    return off + fmt::format("is unknown: none of {} was held against runs; plan --on predicts with known errors\n",
                             plan.target.catalog_entry);
  if (!plan.target.calibrated) return off + "is unknown: systole calibrate measures this machine\n";
  return off + "is known after a run: systole why sets them beside what it took\n";
}

std::string shown(double rows_per_second) {
  return rows_per_second < 100 ? fmt::format("{:.3g}", rows_per_second) : with_commas(std::llround(rows_per_second));
}

ExitCode plan(const PlanOptions& options, Context& context) {
  const LoadedWorkload loaded = load_workload(options.workload).value();
  if (loaded.workload.kind == Workload::Kind::serve)
    return plan_serve(options.workload, loaded, options.on, options.out, context);
  if (!options.on.search.empty())
    fail(error(ErrorKind::invalid, "--search is of serving, and this workload trains")
             .hinted("leave --search out; --on compares hardware and layouts"));
  if (!options.on.targets.empty()) return plan_on(options.workload, loaded, options.on, options.out, context);
  if (!options.out.empty()) check_writable(options.out).value();
  PrepareOptions preparing = prepare_options(options.workload, loaded, context).value();
  preparing.data_may_be_absent = true;
  // Like `run`: ranks share the machine.
  const std::int64_t ranks = loaded.workload.num_devices();
  if (ranks > 1 && (!is_xla(preparing.backend) || preparing.backend == "xla-cpu")) preparing.sharers = ranks;
  const Workload workload = ranks > 1 ? for_ranks(loaded.workload) : loaded.workload;
  const PlannedRun prepared = prepare(workload, preparing, context.clock).value();
  context.out.end_progress();
  if (prepared.machine.stale) context.out.warning(*prepared.machine.stale);
  if (workload.ranks.tls && ranks > 1 && !is_xla(preparing.backend))
    context.out.warning(
        "ranks.tls: its cost is not in the estimate, which is of ranks of one machine: they share memory",
        "systole run --dry-run with --rendezvous, as the nodes will have it, counts it");
  if (const auto cut = prepared.data.cut_pairs()) context.out.warning(*cut);
  if (const auto cache = cache_warning(workload)) context.out.warning(*cache);
  if (prepared.origin) context.out.message(fmt::format("begins from '{}' (resume.from)", prepared.origin->name));
  if (const auto idle = idle_axes(prepared)) context.out.warning(*idle);
  if (const auto ragged = empty_rows(prepared.workload))
    context.out.warning(fmt::format("{}: {}", ragged->key, ragged->text), ragged->hint);
  if (workload.data.buckets && workload.data.buckets->automatic && !prepared.data.dataset)
    context.out.warning(
        "data.buckets: auto follows from lengths that are not known: the plan is of rows padded to "
        "model.context, and time is less",
        "systole data build " + words_of(options.workload) + " builds the data, data lengths shows them");
  for (const Error& note : preparing.notes) {
    context.out.warning(note);
    context.out.warning("the plan goes on without the text: memory of its tables and time of evaluation are left out");
  }
  context.out.prose(plan_text(prepared.plan, prepared.origin ? prepared.origin->step() : 0) +
                    error_text(prepared.plan, is_xla(preparing.backend)));
  std::optional<MixtureDrawing> drawing;
  if (prepared.data.mixture) {
    drawing = drawing_of(*prepared.data.mixture, workload, prepared.plan.time.steps);
    context.out.prose(mixture_table(*prepared.data.mixture, *drawing, workload, context.out.width()));
  }
  if (prepared.feed && !prepared.feed->remedy.empty())
    context.out.warning(fmt::format("the reader starves the run: of rows a second, {} are taken and {} given",
                                    shown(prepared.feed->rows_per_second), shown(prepared.feed->given)),
                        prepared.feed->remedy);
  if (is_xla(preparing.backend)) {
    const auto peak = predicted_peak_text(preparing.backend, prepared.machine.catalog_entry, *prepared.job.program,
                                          temporaries_of(*prepared.machine.device));
    if (peak) context.out.prose(*peak + "\n");
  }
  Node node = context.out.json() ? to_node(prepared.plan) : Node();
  if (drawing) {
    node.set("mixture", mixture_node(*prepared.data.mixture, *drawing));
  } else if (prepared.epoch) {
    context.out.prose(to_string(*prepared.epoch) + "\n");
    node.set("epoch", to_node(*prepared.epoch));
  }
  if (context.out.json()) context.out.json(node);
  if (!options.out.empty()) {
    write_text_file(options.out, to_json(prepared.plan)).value();
    context.out.message("written: " + options.out);
  }
  fits(prepared).value();
  context.out.message("next: systole run " +
                      (options.out.empty() ? words_of(options.workload)
                                           : "--plan " + shell_word(options.out) + machine_words(options.workload)));
  return ExitCode::done;
}

}  // namespace

void add_plan(Subcommand app, Context& context) {
  auto options = std::make_shared<PlanOptions>();
  Subcommand command =
      add_command(app, "plan", "what running a workload takes: here, or --on other hardware", options, context, plan);
  options->workload.serves = true;
  add_workload_arguments(command, options->workload);
  command.add_option("--out", options->out, "also write the plan: what run --plan takes");
  add_plan_on_options(command, options->on);
}

}  // namespace systole::cli
