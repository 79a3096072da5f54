#include "ground/store/transfer.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "ground/base/files.h"
#include "ground/base/parallel.h"
#include "ground/store/transfer_object.h"

namespace systole {
namespace {

constexpr std::int64_t kRequest = std::int64_t{8} << 20;  // bytes of a request of a bucket, about
constexpr std::int64_t kPage = 1000;                      // entries of a list

std::int64_t parts_of(Bytes size) { return std::max<std::int64_t>(1, (size.count() + kRequest - 1) / kRequest); }

// The facts, with checksums that a bucket states or that are computed of a file here.
Result<ObjectFacts> known(const Place& place, std::string_view path, ObjectFacts facts, const ObjectFacts& beside) {
  if (facts.is_checked() || !place.is_local()) return facts;
  ByteSums sums = sums_for(beside);
  TRY(read_version(*place.objects, path, facts, place.of(path), sums,
                   [](std::span<const std::byte>) { return Status(); }));
  facts.crc32c = sums.crc32c();
  if (!beside.crc32c && !beside.md5.empty()) facts.md5 = sums.md5();
  return facts;
}

bool is_same(const ObjectFacts& a, const ObjectFacts& b) {
  if (a.size != b.size) return false;
  if (a.crc32c && b.crc32c) return *a.crc32c == *b.crc32c;
  return !a.md5.empty() && a.md5 == b.md5;
}

// The row of an object that is at the destination whole; nothing: it has to be sent.
Result<std::optional<ManifestRow>> whole_at(const TransferItem& item, const Place& to) {
  const SourceVersion source = TRY(source_version(*item.from, item.path));
  const Result<ObjectFacts> target = describe_object(*to.objects, item.to);
  if (!target.ok() && target.error().kind == ErrorKind::not_found) return std::optional<ManifestRow>();
  if (!target.ok()) return target.error();
  if (target->size != source.facts.size) return std::optional<ManifestRow>();
  const ObjectFacts here = TRY(known(*item.from, item.path, source.facts, *target));
  const ObjectFacts there = TRY(known(to, item.to, *target, here));
  if (!is_same(here, there)) return std::optional<ManifestRow>();
  const std::optional<std::uint32_t> crc = here.crc32c ? here.crc32c : there.crc32c;
  return std::optional(ManifestRow{.name = item.to,
                                   .size = here.size,
                                   .crc32c = crc,
                                   .md5 = crc ? "" : here.md5,
                                   .generation = source.facts.generation.text,
                                   .checked = item.from->is_local() || source.facts.is_checked()});
}

Status check_names(const std::vector<TransferItem>& items) {
  std::map<std::string_view, const TransferItem*> seen;
  for (const TransferItem& item : items) {
    const auto [at, is_new] = seen.emplace(item.to, &item);
    if (is_new) continue;
    return error(ErrorKind::invalid, "'{}' and '{}' would both be '{}'", at->second->from->of(at->second->path),
                 item.from->of(item.path), item.to)
        .hinted("send them into two folders");
  }
  return {};
}

// Those of `paths` that may be removed as others. A list of a folder follows links to folders: what lies behind one may
// be an item under its own name, or none of this folder's.
Result<std::vector<std::string>> removable(const std::map<std::string, Bytes, std::less<>>& paths, const Place& to) {
  std::set<std::string, std::less<>> own;
  if (to.is_local() && !paths.empty()) {
    for (const std::filesystem::path& file : TRY(files_below(to.folder)))
      own.insert(file.lexically_relative(to.folder).string());
  }
  std::vector<std::string> removed;
  for (const auto& [path, size] : paths)
    if (path != kManifest && (!to.is_local() || own.contains(path))) removed.push_back(path);
  return removed;
}

// Settled, so that no power cut brings the manifest back beside what changes next.
Status remove_manifest(const Place& to) {
  TRY(to.objects->remove(kManifest));
  return to.objects->settle("");
}

// What is too large for a bucket would be told only when all of it was sent.
Status check_sizes(const std::vector<TransferItem>& items, const Place& to) {
  if (to.is_local()) return {};
  for (const TransferItem& item : items) {
    if (item.size <= kLargestObject) continue;
    return error(ErrorKind::does_not_fit, "'{}' has {}, and an object of a bucket has at most {}",
                 item.from->of(item.path), to_string(item.size), to_string(kLargestObject))
        .hinted("cut it into several files");
  }
  return {};
}

// To know whose parts lie there takes a request for each object: only where they decide. Those of others go only if that
// makes enough room. REQUIRES: no other transfer writes there.
Status check_room(const TransferPlan& plan, const Place& to, int jobs) {
  if (TRY(to.objects->free_space()) >= plan.bytes) return {};
  const BrokenOff parts = TRY(broken_off(to, plan.send, jobs));
  const Bytes room = TRY(to.objects->free_space());
  if (room + parts.own + parts.others >= plan.bytes) {
    if (room + parts.own < plan.bytes)
      for (const std::string& part : parts.of_others) TRY(to.files->remove(part));
    return {};
  }
  return error(ErrorKind::does_not_fit, "{} are to be sent, and '{}' has {} free", to_string(plan.bytes), to.shown,
               to_string(room))
      .hinted("free some space, or send to another disk");
}

Error hinted_again(Error why) {
  if (why.hint.empty() && why.kind == ErrorKind::no_space) why.hint = "free some space; the same command goes on";
  return why;
}

}  // namespace

std::int64_t reads_of_object(Bytes size) { return 1 + parts_of(size); }

Result<TransferPlan> plan_transfer(std::vector<TransferItem> items, const Place& to, const TransferOptions& options) {
  std::erase_if(items, [](const TransferItem& item) { return item.to == kManifest; });
  std::ranges::sort(items, {}, &TransferItem::to);
  TRY(check_names(items));
  TRY(check_sizes(items, to));
  std::map<std::string, Bytes, std::less<>> there;
  const ObjectList listed = TRY(to.objects->list(""));
  for (const ObjectEntry& object : listed.objects) there.emplace(object.path, object.size);
  std::vector<std::optional<ManifestRow>> whole(items.size());
  TRY(for_each_in_parallel(items.size(), options.jobs, [&](std::size_t i) -> Status {
    const auto found = there.find(items[i].to);
    if (found != there.end() && found->second == items[i].size) whole[i] = TRY(whole_at(items[i], to));
    return {};
  }));
  TransferPlan plan;
  plan.writes = to.is_local() ? 0 : (static_cast<std::int64_t>(there.size()) + kPage - 1) / kPage;
  for (std::size_t i = 0; i < items.size(); ++i) {
    there.erase(items[i].to);
    if (whole[i]) {
      plan.kept.push_back(*std::move(whole[i]));
      continue;
    }
    plan.bytes += items[i].size;
    if (!items[i].from->is_local()) plan.reads += reads_of_object(items[i].size);
    if (!to.is_local()) plan.writes += items[i].size.count() <= kRequest ? 1 : parts_of(items[i].size) + 2;
    plan.send.push_back(std::move(items[i]));
  }
  if (options.remove_others) plan.remove = TRY(removable(there, to));
  return plan;
}

Result<std::unique_ptr<FileLock>> lock_destination(const Place& to) {
  if (!to.is_local()) return std::unique_ptr<FileLock>();
  Result<std::unique_ptr<FileLock>> taken = to.files->try_lock("");
  if (taken.ok()) return taken;
  if (taken.error().kind == ErrorKind::unsupported) return std::unique_ptr<FileLock>();
  if (taken.error().kind != ErrorKind::busy) return taken;
  return error(ErrorKind::busy, "another process transfers into '{}'", to.shown).hinted("wait for it to end");
}

Result<Transferred> transfer(const TransferPlan& plan, const Place& to, const TransferOptions& options) {
  Transferred done;
  if (to.is_local()) TRY(check_room(plan, to, options.jobs));
  if (!plan.send.empty() || !plan.remove.empty()) TRY(remove_manifest(to));
  std::vector<ManifestRow> rows(plan.send.size());
  std::atomic<std::int64_t> objects = 0, bytes = 0;
  const auto told = [&] {
    if (options.progress) options.progress(objects, Bytes(bytes.load()));
  };
  Status sent = for_each_in_parallel(plan.send.size(), options.jobs, [&](std::size_t i) -> Status {
    rows[i] = TRY(transfer_object(plan.send[i], to, [&](Bytes more) {
      bytes += more.count();
      told();
    }));
    ++objects;
    told();
    return {};
  });
  if (!sent.ok()) return hinted_again(std::move(sent).error());
  TRY(remove_parts(to, plan.send));
  TRY(for_each_in_parallel(plan.remove.size(), options.jobs,
                           [&](std::size_t i) { return to.objects->remove(plan.remove[i]); }));
  done.sent = objects;
  done.bytes = Bytes(bytes.load());
  done.removed = static_cast<std::int64_t>(plan.remove.size());
  rows.insert(rows.end(), plan.kept.begin(), plan.kept.end());
  std::ranges::sort(rows, {}, &ManifestRow::name);
  for (const ManifestRow& row : rows)
    if (!row.checked) done.unchecked.push_back(row.name);
  if (options.manifest) TRY(to.objects->put(kManifest, to_json(FolderManifest{options.from, std::move(rows)})));
  return done;
}

}  // namespace systole
