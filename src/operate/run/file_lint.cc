#include "operate/run/file_lint.h"

#include <algorithm>

#include "execute/data/file_patterns.h"
#include "execute/data/text_source.h"
#include "ground/base/counted.h"
#include "ground/base/files.h"
#include "ground/store/object_tiers.h"
#include "ground/store/store.h"
#include "operate/run/named_objects.h"
#include "operate/run/run_mixture.h"

namespace systole {
namespace {

constexpr std::int64_t kMany = 1000;
constexpr Bytes kTiny = 64 * kKiB, kHuge = 4 * kGiB;

// Network file systems whose rename and fsync keep what a disk's keep, as far as their servers do.
bool is_remote(MountKind mount) { return mount != MountKind::disk && mount != MountKind::memory; }

bool reads_objects(const DataSpec& data) {
  const auto any = [](const TextSpec& text) { return std::ranges::any_of(text.files, is_bucket_uri); };
  return any(data.train) || any(data.held_out) ||
         std::ranges::any_of(data.mixture.sources, any, &MixtureSpec::Source::text);
}

}  // namespace

std::vector<Lint> size_lint(std::int64_t files, Bytes bytes, MountKind mount) {
  std::vector<Lint> found;
  const Bytes each(bytes.count() / std::max<std::int64_t>(1, files));
  if (files >= kMany && each < kTiny)
    found.push_back({"tiny_files", "data.train.files",
                     fmt::format("{} of {} on average: opening them takes longer than reading them",
                                 counted(files, "file"), to_string(each)),
                     "systole data pack train.tfrecord FILES... makes one file of records of them"});
  if (is_remote(mount) && files == 1 && bytes >= kHuge)
    found.push_back({"one_huge_file", "data.train.files",
                     fmt::format("one file of {} on {}: it is read as one stream", to_string(bytes), name_of(mount)),
                     "split it into files of 100 MiB to 1 GiB"});
  return found;
}

std::vector<Lint> mount_lint(const std::string& key, MountKind mount) {
  if (!is_remote(mount)) return {};
  if (key == "data.folder")
    return {{"rows_on_a_mount", key,
             fmt::format("on {}: each step reads its rows in small pieces, a round trip each until they are cached",
                         name_of(mount)),
             "systole data probe tells what it gives; a folder on a local disk is faster"}};
  if (mount == MountKind::fuse)
    return {{"saves_on_a_mount", key, "on FUSE: rename and fsync of many such mounts are not those of a disk",
             "a folder on a disk or NFS, or a bucket by its URI: gs://BUCKET/PATH"}};
  if (mount == MountKind::smb || mount == MountKind::nine_p)
    return {{"saves_on_a_mount", key, fmt::format("on {}: locks and fsync depend on how it is mounted", name_of(mount)),
             "a folder on a disk or NFS, or a bucket by its URI: gs://BUCKET/PATH"}};
  return {};
}

std::optional<Lint> cache_lint(const Workload& workload) {
  const DataSpec& data = workload.data;
  if (!data.cache_memory && !data.cache_limit) return std::nullopt;
  const char* const key = data.cache_memory ? "data.cache.memory" : "data.cache.limit";
  if (!reads_objects(data))
    return Lint{"cache_of_nothing", key,
                "it keeps objects of buckets, and the text is read where it is: nothing is kept",
                "take it out, or name the text by its URI in a bucket, gs:// or s3://"};
  const auto crowded = data.cache_memory ? crowded_memory(*data.cache_memory) : std::nullopt;
  if (!crowded) return std::nullopt;
  return Lint{"cache_beyond_memory", key, crowded->message, crowded->hint};
}

std::optional<Error> cache_warning(const Workload& workload) {
  const std::optional<Lint> lint = cache_lint(workload);
  if (!lint) return std::nullopt;
  return key_error(ErrorKind::invalid, lint->key, "{}", lint->text).hinted(lint->hint);
}

std::vector<Lint> file_lint(const Workload& workload) {
  std::vector<Lint> found;
  const auto add = [&](std::vector<Lint> more) { std::ranges::move(more, std::back_inserter(found)); };
  const std::string& saves = workload.checkpoint.folder;
  if (!saves.empty() && saves.find("://") == saves.npos) add(mount_lint("checkpoint.folder", mount_kind_at(saves)));
  if (workload.data.kind != DataSpec::Kind::text) return found;
  add(mount_lint("data.folder", mount_kind_at(workload.data.folder)));
  if (auto cache = cache_lint(workload)) found.push_back(*std::move(cache));
  const Result<std::unique_ptr<Store>> root = open_posix_store("/");
  std::vector<std::string> patterns;
  const bool is_mixture = !workload.data.mixture.sources.empty();
  for (const Workload& one : is_mixture ? workloads_of_sources(workload) : std::vector{workload})
    for (const std::string& file : one.data.train.files)
      if (const Result<std::string> path = below_root(file); path.ok()) patterns.push_back(*path);
  if (!root.ok() || patterns.empty()) return found;
  const auto files = expand_files(**root, patterns, "/");
  if (!files.ok() || files->empty()) return found;
  Bytes bytes;
  for (const std::string& file : *files)
    if (const Result<Bytes> size = (*root)->size(file); size.ok()) bytes += *size;
  std::vector<Lint> sizes =
      size_lint(static_cast<std::int64_t>(files->size()), bytes, mount_kind_at("/" + files->front()));
  for (Lint& lint : sizes)
    if (is_mixture) lint.key = "data.mixture.sources";
  add(std::move(sizes));
  return found;
}

}  // namespace systole
