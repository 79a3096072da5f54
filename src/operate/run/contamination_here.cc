#include "operate/run/contamination_here.h"

#include "execute/data/file_patterns.h"
#include "ground/base/files.h"
#include "operate/run/bucket_files.h"
#include "operate/run/data_parts.h"
#include "operate/run/run_mixture.h"

namespace systole {
namespace {

// A source's documents, as its dataset divides them.
void add_source(const BuildOptions& build, const std::string& name, ContaminationTexts& texts) {
  if (build.held_out) {
    texts.held_out.push_back({name, *build.held_out, build.held_out_text});
    texts.training.push_back({name, build.train, build.train_text});
    return;
  }
  const auto held = [fraction = build.held_out_fraction, seed = build.seed](std::string_view text) {
    return is_held_out(text, fraction, seed);
  };
  if (build.held_out_fraction > 0) texts.held_out.push_back({name, build.train, build.train_text, held});
  texts.training.push_back(
      {name, build.train, build.train_text, [held](std::string_view text) { return !held(text); }});
}

// The files that a pattern names, as paths of `files`.
Result<std::vector<std::string>> expand(BucketFiles& files, const std::string& pattern) {
  if (is_bucket_uri(pattern)) return files.expand(pattern);
  if (is_folder(pattern)) return folder_for_files(pattern, ".jsonl");
  std::vector<std::string> found = TRY(expand_files(files.root(), {TRY(below_root(pattern))}, "/"));
  for (std::string& path : found) path = "/" + path;
  return found;
}

}  // namespace

Result<ContaminationTexts> contamination_texts(const Workload& workload, const WorkloadSource& source,
                                               const AgainstFiles& against, const DataProgress& progress) {
  std::unique_ptr<BucketFiles> files = TRY(data_files(workload, progress));
  ContaminationTexts texts;
  const bool mixed = !workload.data.mixture.sources.empty();
  const std::vector<Workload> workloads = mixed ? workloads_of_sources(workload) : std::vector<Workload>{workload};
  TextOptions options;
  for (std::size_t s = 0; s < workloads.size(); ++s) {
    const std::string name = mixed ? workload.data.mixture.sources[s].name : "";
    const BuildOptions build = TRY(build_options(workloads[s], *files, source, {}, name));
    if (s == 0) options = build.train_text;
    add_source(build, name, texts);
  }
  options.format = TextFormat::by_name;
  options.target.clear();
  options.where.clear();
  options.dedupe = false;
  if (!against.field.empty()) options.field = against.field;
  for (const std::string& pattern : against.patterns) {
    texts.against.push_back({pattern, {files.get(), TRY(expand(*files, pattern)), ""}, options});
  }
  texts.files = std::move(files);
  return texts;
}

}  // namespace systole
