#include "ground/store/transfer_object.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "ground/base/parallel.h"
#include "ground/store/object_path.h"
#include "ground/store/path.h"

namespace systole {
namespace {

constexpr std::string_view kPart = ".part";

// A file's time and number: its bytes have no generation, and reading them twice to have one would cost as much as
// sending them.
std::string mark_of(const Place& from, std::string_view path) {
  struct stat info {};
  if (!from.is_local() || ::stat(fmt::format("{}/{}", from.folder, path).c_str(), &info) != 0) return "";
  return fmt::format("{} {} {} {}", info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

// The hidden file of this version of this object, the same in a later process.
std::string part_of(const TransferItem& item, const SourceVersion& version) {
  const std::string_view folder = parent_of(item.to);
  const std::string key = fmt::format("{}\n{}\n{}\n{}\n{}", item.from->of(item.path), item.to,
                                      version.facts.generation.text, version.facts.size.count(), version.mark);
  return fmt::format("{}{}{}{}{}", folder, folder.empty() ? "" : "/", kOwnName, to_hex(hash128(key)), kPart);
}

// The bytes that an earlier call left, added to `sums`. Too many, or with no checksum to compare them with at the end
// (a power cut leaves zeros where bytes were not yet on the disk): none, and the file goes.
Status take_part(Store& files, const std::string& part, const ObjectFacts& facts, ByteSums& sums) {
  const Result<Bytes> size = files.size(part);
  if (!size.ok()) return size.error().kind == ErrorKind::not_found ? Status() : Status(size.error());
  if (*size > facts.size || !facts.is_checked()) return files.remove(part);
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(size->count(), kCopyPiece)));
  for (std::int64_t at = 0; at < size->count();) {
    const auto piece = std::span(buffer).first(static_cast<std::size_t>(std::min(kCopyPiece, size->count() - at)));
    TRY(files.read(part, at, piece));
    sums.add(piece);
    at += static_cast<std::int64_t>(piece.size());
  }
  return {};
}

// As the file `part`, which is whole and durable afterwards.
Status fill_part(const TransferItem& item, const ObjectFacts& facts, Store& files, const std::string& part,
                 ByteSums& sums, const std::function<void(Bytes)>& arrived) {
  TRY(take_part(files, part, facts, sums));
  const bool goes_on = sums.size() > Bytes();
  if (goes_on) arrived(sums.size());
  const auto file = goes_on ? TRY(files.append_to(part)) : TRY(files.create(part));
  const std::string shown = item.from->of(item.path);
  Status read =
      read_version(*item.from->objects, item.path, facts, shown, sums, [&](std::span<const std::byte> bytes) -> Status {
        TRY(file->append(bytes));
        arrived(Bytes(bytes.size()));
        return {};
      });
  // What does not match, or is of a version that is gone, is worth nothing later.
  if (!read.ok() && (read.error().kind == ErrorKind::corrupt || read.error().kind == ErrorKind::busy)) {
    (void)file->close();
    (void)files.remove(part);
    arrived(Bytes(-sums.size().count()));
  }
  TRY(std::move(read));
  TRY(file->sync());
  return file->close();
}

Status into_folder(const TransferItem& item, const SourceVersion& version, const Place& to, ByteSums& sums,
                   const std::function<void(Bytes)>& arrived) {
  const std::string_view folder = parent_of(item.to);
  if (!folder.empty()) TRY(to.objects->make_folder(folder));
  const std::string part = part_of(item, version);
  const bool had_part = TRY(to.files->exists(part));
  Status filled = fill_part(item, version.facts, *to.files, part, sums, arrived);
  if (!filled.ok() && filled.error().kind == ErrorKind::corrupt && had_part) {  // what was left was not its beginning
    sums = sums_for(version.facts);
    filled = fill_part(item, version.facts, *to.files, part, sums, arrived);
  }
  TRY(std::move(filled));
  if (mark_of(*item.from, item.path) != version.mark) {
    TRY(to.files->remove(part));
    arrived(Bytes(-version.facts.size.count()));
    return error(ErrorKind::busy, "'{}' changed while it was read", item.from->of(item.path));
  }
  TRY(to.files->rename(part, item.to));
  return to.objects->settle(folder);
}

Status into_bucket(const TransferItem& item, const SourceVersion& version, const Place& to, ByteSums& sums,
                   const std::function<void(Bytes)>& arrived) {
  const std::unique_ptr<Upload> upload = TRY(to.objects->start_upload(item.to));
  const Status sent = read_version(*item.from->objects, item.path, version.facts, item.from->of(item.path), sums,
                                   [&](std::span<const std::byte> bytes) -> Status {
                                     TRY(upload->append(bytes));
                                     arrived(Bytes(bytes.size()));
                                     return {};
                                   });
  if (sent.ok() && mark_of(*item.from, item.path) == version.mark) return upload->complete();
  arrived(Bytes(-sums.size().count()));
  TRY(sent);
  return error(ErrorKind::busy, "'{}' changed while it was read", item.from->of(item.path));
}

Result<std::vector<std::string>> parts_beside(const Place& to, const std::vector<TransferItem>& items) {
  std::vector<std::string> parts;
  std::set<std::string, std::less<>> folders;
  if (to.is_local())
    for (const TransferItem& item : items) folders.emplace(parent_of(item.to));
  for (const std::string& folder : folders) {
    const Result<std::vector<std::string>> names = to.files->list(folder);
    if (!names.ok() && names.error().kind == ErrorKind::not_found) continue;
    if (!names.ok()) return names.error();
    for (const std::string& name : *names) {
      if (is_own_name(name) && name.ends_with(kPart))
        parts.push_back(folder.empty() ? name : fmt::format("{}/{}", folder, name));
    }
  }
  return parts;
}

}  // namespace

Result<SourceVersion> source_version(const Place& from, std::string_view path) {
  std::string mark = mark_of(from, path);
  return SourceVersion{TRY(describe_object(*from.objects, path)), std::move(mark)};
}

Result<ManifestRow> transfer_object(const TransferItem& item, const Place& to,
                                    const std::function<void(Bytes)>& arrived) {
  for (int n = 1;; ++n) {
    const SourceVersion version = TRY(source_version(*item.from, item.path));
    ByteSums sums = sums_for(version.facts);
    Status done =
        to.is_local() ? into_folder(item, version, to, sums, arrived) : into_bucket(item, version, to, sums, arrived);
    // A file that became shorter says so as `corrupt`; so does a network that changed a bit.
    const bool again = !done.ok() && (done.error().kind == ErrorKind::busy || done.error().kind == ErrorKind::corrupt);
    if (again && n < kMostTries) continue;
    TRY(std::move(done));
    return ManifestRow{.name = item.to,
                       .size = sums.size(),
                       .crc32c = sums.crc32c(),
                       .md5 = {},
                       .generation = version.facts.generation.text,
                       .checked = item.from->is_local() || version.facts.is_checked()};
  }
}

Result<BrokenOff> broken_off(const Place& to, const std::vector<TransferItem>& items, int jobs) {
  const std::vector<std::string> parts = TRY(parts_beside(to, items));
  if (parts.empty()) return BrokenOff();
  std::vector<std::string> own(items.size());
  TRY(for_each_in_parallel(items.size(), jobs, [&](std::size_t i) -> Status {
    own[i] = part_of(items[i], TRY(source_version(*items[i].from, items[i].path)));
    return {};
  }));
  std::ranges::sort(own);
  BrokenOff found;
  for (const std::string& part : parts) {
    const bool is_own = std::ranges::binary_search(own, part);
    (is_own ? found.own : found.others) += TRY(to.files->size(part));
    if (!is_own) found.of_others.push_back(part);
  }
  return found;
}

Status remove_parts(const Place& to, const std::vector<TransferItem>& items) {
  for (const std::string& part : TRY(parts_beside(to, items))) TRY(to.files->remove(part));
  return {};
}

}  // namespace systole
