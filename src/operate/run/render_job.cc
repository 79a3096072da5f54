#include "operate/run/render_job.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "ground/base/errors.h"
#include "ground/base/version.h"
#include "ground/catalog/hardware.h"
#include "ground/catalog/tables.h"
#include "ground/store/sha256.h"
#include "operate/check/lint.h"
#include "operate/run/batch_document.h"
#include "operate/run/catalog_files.h"
#include "operate/run/held_plan.h"
#include "operate/run/planned_replicas.h"
#include "operate/run/storage_here.h"
#include "operate/targets/job_targets.h"
#include "predict/plan/volume_sizes.h"

namespace systole {
namespace {

Carried carried(std::string text) {
  std::string sha256 = sha256_of(text);
  return {std::move(text), std::move(sha256)};
}

Result<std::vector<ImageRow>> known_images() {
  const std::string folder = user_catalog_folder(std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME"));
  return catalog_images(TRY(read_catalog_tables(folder)));
}

RenderFacts facts_of(CatalogView& view) {
  return {.catalog = &view.catalog,
          .machines = view.tables.machines().value(),
          .slices = view.tables.slices().value(),
          .zones = view.tables.zones().value(),
          .fabrics = view.tables.fabrics().value(),
          .storage = view.tables.storage().value(),
          .prices = view.tables.prices().value(),
          .quotas = view.tables.quotas().value(),
          .nccl = view.tables.nccl().value()};
}

// The targets that `check` checks a workload against. A job of several nodes that implies none is held to what all
// targets share, but one on TPUs, which not all have.
std::vector<const JobTargetRow*> targets_checked(const LoadedWorkload& loaded, CatalogView& view) {
  std::vector<const JobTargetRow*> targets = job_targets_meant(loaded.workload, loaded.source);
  const auto says = [&](std::string_view key) { return has_key(loaded.source, key); };
  const bool many = loaded.workload.kind != Workload::Kind::serve &&
                    (says("resources.nodes") || says("resources.accelerators") || says("resources.gpus_per_node"));
  if (!targets.empty() || !many) return targets;
  const Result<RequestedHardware> hardware =
      parse_hardware(view.catalog, view.tables.machines().value(), view.tables.slices().value(),
                     loaded.workload.resources.accelerators, "resources.accelerators:");
  if (!hardware.ok() || !hardware->slice) targets.push_back(&job_targets().front()->row());
  return targets;
}

std::vector<QuotaNote> notes_of(const Rendered& rendered, const Workload& workload) {
  const std::string& project = workload.gcloud.project.empty() ? workload.gke.project : workload.gcloud.project;
  std::vector<QuotaNote> notes;
  for (const QuotaNeed& need : rendered.quotas)
    if (exceeds_default(need))
      notes.push_back({quota_lines({need}, rendered.region).front(), quota_request(need, rendered.region, project)});
  return notes;
}

}  // namespace

Result<std::vector<QuotaNote>> check_targets(const LoadedWorkload& loaded, const std::string& environment) {
  std::vector<QuotaNote> notes;
  CatalogView view = TRY(open_catalog_view(*real_clock()));
  const std::vector<const JobTargetRow*> targets = targets_checked(loaded, view);
  if (targets.empty()) return notes;
  Workload workload = loaded.workload;
  if (const Result<std::string> planned = set_planned_replicas(view, workload); !planned.ok())
    return loaded.source.placed(planned.error());
  fill_open_volumes(workload);
  if (const Status sizes = check_sizes(workload, TRY(view.tables.storage())); !sizes.ok())
    return loaded.source.placed(sizes.error());
  std::vector<Error> wrong;
  for (const JobTargetRow* target : targets) {
    RenderRequest ask{.target = target, .workload = workload, .facts = facts_of(view)};
    ask.workload_file = carried(to_yaml(workload));
    ask.version = kSystoleVersion;
    ask.place = "rendered";
    ask.environment = environment;
    Result<Rendered> rendered = systole::render(ask);
    if (rendered.ok()) {
      std::ranges::move(notes_of(*rendered, loaded.workload), std::back_inserter(notes));
      continue;
    }
    Error first = std::move(rendered).error();
    std::vector<Error> all = std::exchange(first.others, {});
    all.insert(all.begin(), std::move(first));
    for (Error& one : all) {
      one = loaded.source.placed(std::move(one));
      one = naming_file({.path = loaded.source.filename}, std::move(one));
      if (one.where.file.empty()) one.where = {loaded.source.filename, 0, 0};
      one.message += fmt::format(" (render --on {})", target->name);
      wrong.push_back(std::move(one));
    }
  }
  // Errors that an edit of the document fixes come first: the first one's kind is the kind of all.
  std::ranges::stable_partition(wrong, [](const Error& one) { return one.kind == ErrorKind::invalid; });
  if (!wrong.empty()) return together(std::move(wrong));
  return notes;
}

RenderedJob render_job(const RenderArguments& arguments, const char* command,
                       const std::function<std::string(const std::string& run)>& place,
                       const std::function<void(Workload&)>& settle) {
  RenderedJob job;
  WorkloadSource source;
  std::optional<BatchDocument> batch;
  job.target = job_target_row_named(arguments.on).value();
  if (!arguments.plan.empty()) {
    job.plan = plan_in(arguments.plan).value();
    lay_over_plan(arguments.workload.sets, job.plan->workload).value();
    job.workload = job.plan->workload;
  } else if (arguments.workload.path.empty()) {
    fail(error(ErrorKind::invalid, "{} what?", command)
             .hinted(fmt::format("systole {} JOB.yaml --on {}", command, arguments.on)));
  } else if ((batch = batch_document(arguments.workload).value())) {
    job.workload = batch->workload;
  } else {
    LoadedWorkload loaded = load_workload(arguments.workload).value();
    job.workload = std::move(loaded.workload);
    source = std::move(loaded.source);
  }
  if (settle) settle(job.workload);
  CatalogView view = open_catalog_view(*real_clock()).value();
  const auto told = [&](Error why) { return naming_file(arguments.workload, source.placed(std::move(why))); };
  Result<SettledVolumes> volumes = settle_volumes(job.workload, job.plan ? &*job.plan : nullptr, view.tables);
  if (!volumes.ok()) fail(told(std::move(volumes).error()));
  SettledVolumes& settled = *volumes;
  job.storage = std::move(settled.chosen);
  const std::string planned = set_planned_replicas(view, job.workload).value();
  RenderRequest ask{.target = job.target, .workload = job.workload, .facts = facts_of(view)};
  ask.workload_file = carried(to_yaml(job.workload));
  if (batch) {
    ask.batch = &batch->task;
    ask.workload_file = carried(batch->task.file + to_yaml(job.workload));
  }
  if (job.plan) {
    ask.plan = &*job.plan;
    ask.plan_file = carried(to_json(*job.plan) + "\n");
  }
  ask.program_sha256 = sha256_of_file("/proc/self/exe").value();
  ask.version = kSystoleVersion;
  ask.run = run_name(arguments.run, job.workload).value();
  ask.place = place(ask.run);
  ask.environment = arguments.workload.environment;
  ask.planned = planned;
  const std::vector<ImageRow> images = known_images().value();
  ask.image = {.base = arguments.base, .known = images};
  for (const ImageAccelerator each : {ImageAccelerator::cpu, ImageAccelerator::cuda, ImageAccelerator::tpu})
    if (arguments.accelerator == name_of(each)) ask.image.accelerator = each;
  if (!job.target->images && !(arguments.base + arguments.accelerator).empty())
    fail(error(ErrorKind::invalid, "--base and --accelerator are of --on {}",
               fmt::join(job_targets_that(&JobTargetRow::images), " or "))
             .hinted("take them out"));
  Result<Rendered> rendered = systole::render(ask);
  if (!rendered.ok()) fail(naming_file(arguments.workload, std::move(rendered).error()));
  job.rendered = *std::move(rendered);
  std::ranges::move(settled.warnings, std::back_inserter(job.rendered.warnings));
  if (job.workload.kind == Workload::Kind::serve)
    for (const Lint& found : lint(job.workload))
      job.rendered.warnings.push_back(fmt::format("{}: {}; {}", found.key, found.text, found.hint));
  job.sources.push_back({"workload.yaml", ask.workload_file.text});
  if (job.plan) job.sources.push_back({"plan.json", ask.plan_file.text});
  job.workload_sha256 = ask.workload_file.sha256;
  job.plan_sha256 = ask.plan_file.sha256;
  job.program_sha256 = ask.program_sha256;
  return job;
}

}  // namespace systole
