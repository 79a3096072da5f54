#include "operate/run/prove_workload.h"

#include "ground/base/counted.h"
#include "operate/run/plan_run.h"

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

}  // namespace

Result<prove::JobOnSlice> job_on(const WorkloadArguments& arguments, const std::string& mesh, const prove::Slice& slice,
                                 const Catalog& catalog) {
  WorkloadArguments asked = arguments;
  if (!mesh.empty()) asked.sets.push_back(TRY(set_of(mesh)));
  const LoadedWorkload loaded = TRY(load_workload(asked));
  if (const std::int64_t devices = loaded.workload.num_devices(); devices > slice.devices)
    return error(ErrorKind::invalid, "its mesh has {}, and {} has {}", counted(devices, "device"), slice.name,
                 slice.devices)
        .at({arguments.path, 0, 0})
        .hinted("--mesh, or --on a larger slice");
  Result<Job> job = prove::job_for(loaded.workload, slice);
  if (!job.ok()) return told_of_job(loaded.source, std::move(job).error());
  Result<prove::JobOnSlice> result = prove::lowered_on(loaded.workload.name, *job->program, slice, catalog);
  if (!result.ok() && result.error().where.file.empty()) {
    Error told = std::move(result).error();
    told.where.file = arguments.path;
    return told;
  }
  return result;
}

}  // namespace systole
