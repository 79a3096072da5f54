#include "operate/run/rows_if_built.h"

namespace systole {

std::optional<BuiltData> find_like_data(const Workload& workload, const BuildOptions& options) {
  NamedSizes sizes;
  for (const TextFiles* files : {&options.train, options.held_out ? &*options.held_out : nullptr}) {
    if (files == nullptr) continue;
    for (const std::string& path : files->paths)
      sizes.emplace_back(files->prefix + path, files->store->size(path).value());
  }
  return find_like_data(workload, std::move(sizes));
}

std::optional<EpochRows> rows_if_built(const Workload& workload, const WorkloadSource& source) {
  try {
    const Result<TextBuild> build = text_build_of(workload, source);
    if (!build.ok()) return std::nullopt;
    const std::optional<BuiltData> data = find_like_data(workload, build->options);
    if (!data) return std::nullopt;
    Result<EpochRows> rows = rows_of(workload, *data);
    if (rows.ok()) return *std::move(rows);
  } catch (const Failure&) {
    // A file that cannot be read now: its dataset is not known either.
  }
  return std::nullopt;
}

}  // namespace systole
