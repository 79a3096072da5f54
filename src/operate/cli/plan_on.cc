#include "operate/cli/plan_on.h"

#include <filesystem>

#include "ground/base/counted.h"
#include "ground/base/files.h"
#include "ground/base/text_file.h"
#include "operate/cli/plan_scale.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"
#include "predict/plan/chosen_plan.h"
#include "predict/plan/hardware_plan_text.h"
#include "predict/plan/plan_charts.h"

namespace systole::cli {
namespace {

PlanMessages messages_of(Printer& out) {
  return {.progress = [&out](const std::string& text) { out.progress(text); },
          .warning = [&out](const Error& error) { out.warning(error); }};
}

// This machine compared with the choice.
std::string here_text(const PlanReport& plan) {
  if (!plan.here) return "";
  const PlanFacts& here = *plan.here;
  std::string text = fmt::format("{}: ", here.machine);
  const std::string memory = fmt::format("{} of {}", to_string(here.memory_total), to_string(here.memory_limit));
  if (!here.fits()) return text + fmt::format("does not fit: {}\n", memory);
  text += here.step ? fmt::format("{} a step, {} for $0, {}", to_string(*here.step),
                                  to_string(*here.step * plan.request.steps), memory)
                    : fmt::format("a step of unknown length, for $0, {}", memory);
  if (here.step && plan.choice.chosen)
    text += fmt::format(", {:.3g} x as long as the choice", here.step->count() / plan.choice.chosen->step.seconds);
  if (here.step && !here.calibrated) text += "; its speed is estimated: systole calibrate measures it";
  return text + "\nnext: systole run " + words_of(plan.arguments) + " trains on it\n";
}

Node here_node(const PlanReport& plan) {
  if (!plan.here) return {};
  const PlanFacts& here = *plan.here;
  return Node::map({{"name", here.machine},
                    {"step_seconds", here.step ? Node(here.step->count()) : Node()},
                    {"total_seconds", here.step ? Node(here.step->count() * plan.request.steps) : Node()},
                    {"dollars", 0.0},
                    {"memory_bytes", here.memory_total.count()},
                    {"memory_limit_bytes", here.memory_limit.count()},
                    {"calibrated", here.calibrated},
                    {"fits", here.fits()}});
}

std::string region_of_choice(const PlanReport& plan) {
  return std::string(gcp_region_of(plan.request.offers[plan.choice.chosen->offer].zone));
}

PlanAdditions beside(const PlanReport& plan) {
  PlanAdditions beside;
  if (plan.choice.chosen) beside.quotas = quota_node(plan.quotas, region_of_choice(plan));
  beside.this_machine = here_node(plan);
  if (plan.feed_there) beside.feed = offered_feed_node(*plan.feed_there);
  return beside;
}

PlanTextOptions text_options(const PlanReport& plan, bool all, const Printer& out) {
  PlanTextOptions options{.width = out.width(), .all = all, .drawings = !out.quiet()};
  options.bold = [&out](std::string_view text) { return out.ink(Ink::bold, text); };
  if (plan.choice.chosen) options.quotas = quota_lines(plan.quotas, region_of_choice(plan));
  options.this_machine = here_text(plan);
  if (plan.feed_there) options.feed = offered_feed_text(*plan.feed_there);
  return options;
}

Status make_chart_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed || !is_folder(folder))
    return error(ErrorKind::io, "--charts: no folder '{}' can be made: {}", folder,
                 failed ? failed.message() : "it is no folder")
        .hinted("--charts charts");
  return {};
}

}  // namespace

void warn_of_left_out(const Workload& workload, Context& context) {
  if (workload.ranks.tls)
    context.out.warning("ranks.tls: its cost is not in the estimate",
                        "systole calibrate measures it within this machine: link.tls.2 beside link.tcp.2");
  const Provisioning terms = workload.resources.provisioning.value_or(Provisioning::on_demand);
  if (terms == Provisioning::on_demand) return;
  context.out.warning(
      fmt::format(
          "resources.provisioning: {}: dollars here are those of machines on demand; other terms are not planned "
          "yet, nor how often a machine is taken away",
          name_of(terms)),
      "systole catalog prices lists what each of the terms costs");
}

ExitCode plan_on(const WorkloadArguments& arguments, const LoadedWorkload& loaded, const PlanOnOptions& options,
                 const std::string& out, Context& context) {
  if (!out.empty()) check_writable(out).value();
  if (!options.charts.empty()) make_chart_folder(options.charts).value();
  if (!options.scale.empty()) return plan_scale(arguments, loaded, options, context);
  CatalogView view = open_catalog_view(context.clock).value();
  const PlanReport plan =
      plan_on_offers(arguments, loaded, options, view, messages_of(context.out), context.clock).value();
  context.out.end_progress();
  if (!plan.workload.mesh.empty())
    context.out.message("the workload's own mesh is one of many here: --on chooses among all");
  if (plan.workload.train.precision.compute == DType::f32)
    context.out.warning("train.precision computes in f32, which accelerators do many times slower than bf16",
                        "--set train.precision=bf16");
  warn_of_left_out(plan.workload, context);
  for (const auto& [accelerator, why] : plan.left_out)
    context.out.message(fmt::format("left out: {}: {}", accelerator, why));
  const PlanTextOptions shown = text_options(plan, options.all, context.out);
  if (!options.explain.empty()) {
    context.out.prose(explained_text(plan, lost_option(plan, options.explain).value(), shown));
  } else {
    context.out.prose(offered_plan_text(plan, shown));
  }
  if (const auto much = exposed_warning(plan)) context.out.warning(*much);
  if (!options.charts.empty()) {
    const std::pair<const char*, std::string> charts[] = {{"front.svg", front_svg(plan)}, {"time.svg", time_svg(plan)}};
    for (const auto& [name, svg] : charts)
      if (!svg.empty()) write_text_file(options.charts + "/" + name, svg).value();
  }
  if (!out.empty() && plan.choice.chosen) check_runs_as_planned(plan).value();
  if (context.out.json() || !out.empty()) {
    const Node document = plan_document(plan, beside(plan), context.clock).value();
    context.out.json(document);
    if (!out.empty() && plan.choice.chosen) {
      write_text_file(out, to_json(document, 1) + "\n").value();
      context.out.message("written: " + out);
      context.out.message(fmt::format("next: systole run --plan {}, on {}", shell_word(out),
                                      counted(plan.choice.chosen->candidate.devices(), "device")));
    }
  }
  if (plan.choice.chosen) return ExitCode::done;
  if (context.out.json()) return ExitCode::no;
  fail(refusal_of(plan));
}

}  // namespace systole::cli
