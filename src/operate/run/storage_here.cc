#include "operate/run/storage_here.h"

#include <algorithm>
#include <array>

#include "describe/models/list.h"
#include "describe/spec/state_bytes.h"
#include "execute/data/text_source.h"
#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "ground/store/store.h"
#include "operate/render/quote.h"
#include "predict/plan/offer_storages.h"
#include "predict/plan/storage_choice.h"
#include "predict/plan/volume_sizes.h"

namespace systole {
namespace {

// Their bytes say how much text is in them.
bool is_plain(const std::string& file) {
  constexpr std::array kPacked = {".gz",      ".dz",           ".tgz",         ".zst", ".zstd",
                                  ".parquet", ".array_record", ".arrayrecord", ".mds", ".npz"};
  return std::ranges::none_of(kPacked, [&](const char* end) { return file.ends_with(end); });
}

std::optional<std::int64_t> size_of_text(const std::vector<std::string>& patterns, Store& root) {
  std::vector<std::string> absolute;
  for (const std::string& pattern : patterns) {
    if (pattern.find("://") != pattern.npos) return std::nullopt;
    const Result<std::string> path = absolute_path(pattern);
    if (!path.ok()) return std::nullopt;
    absolute.push_back(path->substr(1));  // of the store at "/"
  }
  const Result<std::vector<std::string>> files = expand_files(root, absolute, "/");
  if (!files.ok()) return std::nullopt;
  std::int64_t bytes = 0;
  for (const std::string& file : *files) {
    const Result<Bytes> size = root.size(file);
    if (!size.ok() || !is_plain(file)) return std::nullopt;
    bytes += size->count();
  }
  return bytes;
}

// The feed that a plan was made for. Errors: invalid: it has none.
Result<OfferedFeed> feed_of(const Workload& workload, const Plan* plan, const std::string& path) {
  const std::string on = workload.resources.accelerators.empty() ? "a3-highgpu-8g:1" : workload.resources.accelerators;
  const auto missing = [&](const char* what) {
    return key_error(ErrorKind::invalid, "volumes", "{}: its tier and size follow from the feed, and {}", path, what)
        .hinted(workload.has_model() ? fmt::format("systole plan JOB.yaml --on {} --out plan.json; then render --plan "
                                                   "plan.json; or filestore: zonal with a size",
                                                   shell_word(on))
                                     : "filestore: zonal with a size, such as { filestore: zonal, size: 1TiB }");
  };
  if (!workload.has_model()) return missing("this workload has none");
  if (plan == nullptr) return missing("the time of a step is unknown without a plan");
  if (!plan->feed) return missing("the plan has none");
  if (plan->feed->rows_per_second <= 0) return missing("the plan knows no time of a step");
  const std::int64_t nodes = workload.resources.nodes ? workload.resources.nodes->most : 1;
  OfferedFeed feed{.rows = static_cast<double>(plan->feed->rows), .nodes = plan->feed->nodes.value_or(nodes)};
  feed.row_bytes = plan->feed->row_bytes;
  feed.step = Seconds(feed.rows / plan->feed->rows_per_second);
  return feed;
}

// Of the volume that the workload says: only what asks for an edit.
void add_warning(const Workload& workload, const std::string& mount, const Plan* plan,
                 std::span<const StorageTier> tiers, std::vector<std::string>& lines) {
  Result<OfferedFeed> feed = feed_of(workload, plan, mount);
  if (!feed.ok()) return;
  feed->storage = speed_of_volume(workload.volumes.at(mount), tiers);
  const std::optional<double> spare = feed->spare();
  const bool little = spare && *spare < 1;
  const bool much = spare && *spare >= kTooMuch && feed->enough() && *feed->enough() < feed->storage.size;
  std::string text = offered_feed_text(*feed);
  while (text.ends_with('\n')) text.pop_back();
  if (little || much) lines.push_back(fmt::format("volumes: {}: {}", mount, text));
}

}  // namespace

std::optional<Bytes> shards_of(const Workload& workload) {
  const DataSpec& data = workload.data;
  if (!workload.has_model() || data.kind != DataSpec::Kind::text) return std::nullopt;
  const Result<std::unique_ptr<Store>> root = open_posix_store("/");
  if (!root.ok()) return std::nullopt;
  std::vector<const TextSpec*> texts = {&data.train, &data.held_out};
  for (const MixtureSpec::Source& source : data.mixture.sources) texts.push_back(&source.text);
  std::int64_t bytes = 0;
  for (const TextSpec* text : texts) {
    if (text->files.empty()) continue;
    const std::optional<std::int64_t> size = size_of_text(text->files, **root);
    if (!size) return std::nullopt;
    bytes += *size;
  }
  if (bytes == 0) return std::nullopt;
  return Bytes(bytes * shard_token_bytes(workload.model));
}

// Rows, and checkpoints that are beside them. Nothing: unknown.
static std::optional<Bytes> all_in(const Workload& workload, const std::string& mount) {
  const std::unique_ptr<const Model> model = make_model(workload.model);
  return needed_in(workload, mount, shards_of(workload),
                   state_bytes(num_parameters(*model), num_trainable(*model), workload.train));
}

Result<SettledVolumes> settle_volumes(Workload& workload, const Plan* plan, CatalogTables& tables) {
  SettledVolumes settled;
  const std::span<const StorageTier> tiers = TRY(tables.storage());
  TRY(check_sizes(workload, tiers));
  const std::string* rows = workload.has_model() ? mount_of(workload, workload.data.folder) : nullptr;
  for (auto& [path, volume] : workload.volumes) {
    if (!volume.open()) {
      if (rows != nullptr && *rows == path) add_warning(workload, path, plan, tiers, settled.warnings);
      continue;
    }
    if (workload.has_model() && (rows == nullptr || *rows != path)) return without_rows(path, workload);
    const OfferedFeed feed = TRY(feed_of(workload, plan, path));
    const std::optional<Bytes> holds = volume.size ? volume.size : all_in(workload, path);
    if (!holds) return of_unknown_size(path);
    const std::string* saved = saved_in(workload);
    const bool saves = saved != nullptr && *saved == path;
    const StoragePick pick =
        TRY(cheapest_storage(storage_options(volume, {*holds, feed.nodes, {}, saves}, tiers), feed, *holds));
    volume = pick.option.volume;
    settled.chosen.push_back(fmt::format("volumes: {}: {}", path, pick_text(pick, *holds)));
  }
  return settled;
}

void fill_open_volumes(Workload& workload) {
  for (auto& [path, volume] : workload.volumes)
    if (volume.open()) volume = {.kind = VolumeSpec::Kind::filestore, .of = "zonal", .size = 1024 * kGiB};
}

}  // namespace systole
