#include "operate/run/prove_workload.h"

#include <fmt/ranges.h>

#include "ground/base/counted.h"
#include "ground/base/files.h"
#include "ground/base/quantity.h"
#include "ground/pjrt/places.h"
#include "operate/render/quote.h"
#include "operate/run/plan_run.h"
#include "operate/run/rows_if_built.h"

namespace systole {
namespace {

// "data=4,model=2" as an argument of --set: "mesh={data: 4, model: 2}".
Result<std::string> set_of(const std::string& mesh) {
  std::string axes;
  for (std::size_t at = 0; at <= mesh.size();) {
    const std::size_t end = std::min(mesh.find(',', at), mesh.size()), equals = mesh.find('=', at);
    if (equals == at || equals >= end)
      return error(ErrorKind::invalid, "--mesh '{}': '{}' is no axis with a size", mesh, mesh.substr(at, end - at))
          .hinted("--mesh data=4,model=2");
    axes +=
        (axes.empty() ? "" : ", ") + mesh.substr(at, equals - at) + ": " + mesh.substr(equals + 1, end - equals - 1);
    at = end + 1;
  }
  return "mesh={" + axes + "}";
}

// "xla_a=true", "xla_b=3", "xla_c=0.5", "xla_d=text".
Result<std::pair<std::string, pjrt::OptionValue>> flag_of(std::string word) {
  if (word.starts_with("--")) word.erase(0, 2);
  const std::size_t at = word.find('=');
  if (at == 0 || at == std::string::npos)
    return error(ErrorKind::invalid, "--xla '{}' is no flag with a value", word)
        .hinted("--xla xla_tpu_scoped_vmem_limit_kib=65536");
  return std::pair(word.substr(0, at), TRY(pjrt::option_value(std::string_view(word).substr(at + 1))));
}

}  // namespace

std::string words_of(const ProveArguments& arguments) {
  std::string text = fmt::format("{} --on {}", shell_word(arguments.file), arguments.on);
  if (!arguments.mesh.empty()) text += " --mesh " + shell_word(arguments.mesh);
  if (!arguments.environment.empty()) text += " --env " + shell_word(arguments.environment);
  for (const std::string& set : arguments.sets) text += " --set " + shell_word(set);
  for (const std::string& flag : arguments.flags) text += " --xla " + shell_word(flag);
  if (arguments.partitions > 0) text += fmt::format(" --partitions {}", arguments.partitions);
  if (arguments.replicas > 0) text += fmt::format(" --replicas {}", arguments.replicas);
  if (!arguments.plugins.empty()) text += " --plugins " + shell_word(arguments.plugins);
  return text;
}

Result<prove::ProveOptions> options_of(const ProveArguments& arguments) {
  prove::ProveOptions options;
  options.child = {"/proc/self/exe", "prove", "--child"};
  options.plugins = pjrt::plugins_folder(arguments.plugins);
  options.temporary = temporary_folder();
  options.fresh = arguments.fresh;
  options.whole = arguments.time;
  for (const std::string& flag : arguments.flags) options.flags.push_back(TRY(flag_of(flag)));
  if (arguments.partitions > 0) options.partitions = arguments.partitions;
  if (arguments.replicas > 0) options.replicas = arguments.replicas;
  const Result<Seconds> timeout = parse_seconds(arguments.timeout);
  if (!timeout.ok()) {
    Error why = timeout.error();
    why.message.insert(0, "--timeout: ");
    return why;
  }
  options.limits.timeout = *timeout;
  if (!arguments.max_memory.empty()) options.limits.memory = TRY(parse_bytes(arguments.max_memory));
  return options;
}

Result<prove::Slice> slice_asked(const ProveArguments& arguments, const Catalog& catalog) {
  if (arguments.file.empty())
    return error(ErrorKind::invalid, "systole prove: a workload or a module is required")
        .hinted("systole prove job.yaml --on v5e:2x2");
  if (arguments.on.empty())
    return error(ErrorKind::invalid, "systole prove: --on is required: which chips")
        .hinted(fmt::format("--on {}", fmt::join(prove::example_slices(catalog), ", ")));
  return prove::find_slice(arguments.on, catalog);
}

// The lengths of rows of a workload with data.buckets. Without its dataset they are those that the workload names.
static std::vector<std::int64_t> lengths_of(const LoadedWorkload& loaded, std::optional<Error>& note) {
  std::vector<std::int64_t> lengths;
  if (!loaded.workload.data.buckets) return lengths;
  if (const std::optional<EpochRows> rows = rows_if_built(loaded.workload, loaded.source))
    for (const Bucket& bucket : rows->buckets) lengths.push_back(bucket.edge);
  if (lengths.empty() && loaded.workload.data.buckets->automatic)
    note = error(ErrorKind::not_found,
                 "data.buckets: auto follows from lengths that are not known, as the data are not built: the step of "
                 "rows of model.context is proved alone")
               .hinted("systole data build, and prove it again");
  return lengths;
}

Result<StepsOnSlice> steps_on(const WorkloadArguments& arguments, const std::string& mesh, const prove::Slice& slice,
                              const Catalog& catalog) {
  WorkloadArguments asked = arguments;
  if (!mesh.empty()) asked.sets.push_back(TRY(set_of(mesh)));
  const LoadedWorkload loaded = TRY(load_workload(asked));
  if (const std::int64_t devices = loaded.workload.num_devices(); devices > slice.devices)
    return error(ErrorKind::invalid, "its mesh has {}, and {} has {}", counted(devices, "device"), slice.name,
                 slice.devices)
        .at({arguments.path, 0, 0})
        .hinted("--mesh, or --on a larger slice");
  StepsOnSlice result;
  Result<Job> job = prove::job_for(loaded.workload, slice, lengths_of(loaded, result.note));
  if (!job.ok()) return told_of_job(loaded.source, std::move(job).error());
  Result<std::vector<prove::JobOnSlice>> steps = prove::lowered_on(*job, slice, catalog);
  if (!steps.ok() && steps.error().where.file.empty()) {
    Error told = std::move(steps).error();
    told.where.file = arguments.path;
    return told;
  }
  result.steps = TRY(std::move(steps));
  return result;
}

}  // namespace systole
