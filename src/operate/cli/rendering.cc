#include "operate/cli/rendering.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "ground/catalog/tables.h"
#include "ground/store/sha256.h"
#include "operate/cli/catalog_view.h"
#include "operate/cli/held_plan.h"
#include "operate/cli/version.h"

namespace systole::cli {
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

// The targets that keys of a workload are of. A job of many nodes that names none is held to what all have in common.
std::vector<RenderTarget> targets_named(const LoadedWorkload& loaded) {
  if (loaded.workload.kind == Workload::Kind::machines) return {RenderTarget::gcloud};
  const WorkloadSource& source = loaded.source;
  const auto says = [&](std::string_view key) {
    return std::ranges::any_of(source.places, [&](const auto& place) { return place.first.starts_with(key); });
  };
  std::vector<RenderTarget> targets;
  if (says("gke."))
    targets.push_back(RenderTarget::gke);
  else if (says("kubernetes.") || says("claims") || says("volumes"))
    targets.push_back(RenderTarget::kubernetes);
  if (says("ssh.")) targets.push_back(RenderTarget::ssh);
  if (says("slurm.")) targets.push_back(RenderTarget::slurm);
  const bool many = says("resources.nodes") || says("resources.accelerators") || says("resources.gpus_per_node");
  if (targets.empty() && many) targets.push_back(RenderTarget::slurm);
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
  const std::vector<RenderTarget> targets = targets_named(loaded);
  if (targets.empty()) return notes;
  CatalogView view = TRY(open_catalog_view(*real_clock()));
  std::vector<Error> wrong;
  for (const RenderTarget target : targets) {
    RenderAsk ask{.target = target, .workload = loaded.workload, .facts = facts_of(view)};
    ask.workload_file = carried(to_yaml(loaded.workload));
    ask.version = kVersion;
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
      if (one.where.file.empty()) one.where = {loaded.source.filename, 0, 0};
      one.message += fmt::format(" (render --on {})", name_of(target));
      wrong.push_back(std::move(one));
    }
  }
  if (!wrong.empty()) return together(std::move(wrong));
  return notes;
}

void add_render_arguments(Subcommand command, RenderArguments& arguments, const std::vector<std::string>& targets) {
  arguments.workload.command = true;
  arguments.workload.machines = true;
  Option workload = command.add_option("workload", arguments.workload.path, "the workload's YAML file");
  Option plan = command.add_option("--plan", arguments.plan,
                                   "what a plan says: plan.json of `systole plan --out`, in place of a workload");
  plan.excludes(workload);
  plan.excludes(
      command.add_option("--env", arguments.workload.environment, "lay this environment of the workload over it"));
  command
      .add_option("--set", arguments.workload.sets,
                  "lay KEY=VALUE over the workload, of a plan train.seed or objective.budget; may be repeated")
      .take_all();
  command.add_option("--on", arguments.on, fmt::format("where: {}", fmt::join(targets, ", "))).required();
  command.add_option("--run", arguments.run, "what the run is called there; without: as the workload");
}

void add_image_arguments(Subcommand command, RenderArguments& arguments) {
  command.add_option("--base", arguments.base,
                     "docker: the image that it is built on, NAME:TAG of the catalog's images");
  command
      .add_option("--accelerator", arguments.accelerator,
                  "docker: what the image is for; without: what the workload runs on")
      .check(one_of({"cpu", "cuda", "tpu"}));
}

RenderedJob render_job(const RenderArguments& arguments, const char* command,
                       const std::function<std::string(const std::string& run)>& place,
                       const std::function<void(Workload&)>& settle) {
  RenderedJob job;
  job.target = render_target_named(arguments.on).value();
  if (!arguments.plan.empty()) {
    job.plan = plan_in(arguments.plan).value();
    lay_over_plan(arguments.workload.sets, job.plan->workload).value();
    job.workload = job.plan->workload;
  } else if (arguments.workload.path.empty()) {
    fail(error(ErrorKind::invalid, "{} what?", command)
             .hinted(fmt::format("systole {} JOB.yaml --on {}", command, arguments.on)));
  } else {
    job.workload = load_workload(arguments.workload).value().workload;
  }
  if (settle) settle(job.workload);
  CatalogView view = open_catalog_view(*real_clock()).value();
  RenderAsk ask{.target = job.target, .workload = job.workload, .facts = facts_of(view)};
  ask.workload_file = carried(to_yaml(job.workload));
  if (job.plan) {
    ask.plan = &*job.plan;
    ask.plan_file = carried(to_json(*job.plan) + "\n");
  }
  ask.program_sha256 = sha256_of_file("/proc/self/exe").value();
  ask.version = kVersion;
  ask.run = run_name(arguments.run, job.workload).value();
  ask.place = place(ask.run);
  ask.environment = arguments.workload.environment;
  const std::vector<ImageRow> images = known_images().value();
  ask.image = {.base = arguments.base, .known = images};
  for (const ImageAccelerator each : {ImageAccelerator::cpu, ImageAccelerator::cuda, ImageAccelerator::tpu})
    if (arguments.accelerator == name_of(each)) ask.image.accelerator = each;
  if (job.target != RenderTarget::docker && !(arguments.base + arguments.accelerator).empty())
    fail(error(ErrorKind::invalid, "--base and --accelerator are of --on docker").hinted("take them out"));
  job.rendered = systole::render(ask).value();
  job.sources.push_back({"workload.yaml", ask.workload_file.text});
  if (job.plan) job.sources.push_back({"plan.json", ask.plan_file.text});
  job.workload_sha256 = ask.workload_file.sha256;
  job.plan_sha256 = ask.plan_file.sha256;
  job.program_sha256 = ask.program_sha256;
  return job;
}

}  // namespace systole::cli
