#include "operate/run/run_numerics.h"

#include <optional>

#include "ground/base/errors.h"
#include "operate/run/checkpoint_home.h"

namespace systole {
namespace {

std::string exact_numerics(const Workload& workload, const std::string& of_machine) {
  return fmt::format("{}, exact over {} logical shards", of_machine, workload.train.logical_shards);
}

// How to go on with a run of another machine, if this one can compute the same. `option`: the option for that.
std::string way_on(const Workload& workload, const checkpoint::Manifest& manifest, const std::string& before,
                   const std::string& option) {
  const Node* isa = manifest.extra.find("isa");
  const auto pinned = isa != nullptr ? numerics_pinned_to(isa->text()) : std::nullopt;
  const bool helps = pinned && before == exact_numerics(workload, *pinned);
  return fmt::format(
      "go on where it began, {}or with --set train.exact=false: from the same bytes, but other roundings",
      helps ? fmt::format("with {}, which computes by {} here too, ", option, isa->text()) : "");
}

}  // namespace

std::string numerics_of(const Workload& workload, const Machine& machine) {
  return workload.train.exact ? exact_numerics(workload, machine.numerics) : machine.device->target().name;
}

Status check_numerics(const checkpoint::Manifest& from, const Workload& workload, const std::string& numerics,
                      CheckpointUse use) {
  const Node* before = from.extra.find("numerics");
  if (!workload.train.exact || before == nullptr || before->text() == numerics) return {};
  const Node* isa = from.extra.find("isa");
  const std::string option =
      use == CheckpointUse::resume || isa == nullptr ? "--pin-isa" : fmt::format("--pin-isa {}", isa->text());
  return error(ErrorKind::invalid, "exactness ends here: the run was computed by {}, this is {}", before->text(),
               numerics)
      .hinted(way_on(workload, from, before->text(), option));
}

Status computes_alike(const checkpoint::Manifest& from, const PlannedRun& prepared) {
  return check_numerics(from, prepared.workload, numerics_of(prepared.workload, prepared.machine),
                        CheckpointUse::new_run);
}

Result<std::string> recorded_isa(const std::string& folder, const Workload& workload) {
  const CheckpointHome home = TRY(open_home(folder, workload.checkpoint));
  const std::vector<std::int64_t> steps = TRY(checkpoint::list_steps(home.folder));
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const Result<checkpoint::Manifest> manifest = checkpoint::load_manifest(home.folder, *step);
    if (!manifest.ok() && checkpoint::is_refused(manifest.error())) return below(home.root, manifest.error());
    if (!manifest.ok()) continue;
    if (const Node* isa = manifest->extra.find("isa"); isa != nullptr && !isa->text().empty()) return isa->text();
    break;
  }
  return error(ErrorKind::not_found, "--pin-isa: the run '{}' has no checkpoint that says its instructions", folder)
      .hinted("name them: --pin-isa avx2");
}

}  // namespace systole
