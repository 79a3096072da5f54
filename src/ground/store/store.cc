#include "ground/store/store.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "ground/store/path.h"
#include "ground/store/unfinished_name.h"

namespace systole {
namespace {

constexpr std::string_view kUnfinished = ".tmp";

template <typename Container>
Result<Container> read_whole(Store& store, std::string_view path, Bytes limit) {
  const Bytes size = TRY(store.size(path));
  if (size > limit) {
    return error(ErrorKind::does_not_fit, "'{}' has {} bytes and the limit for such a file is {}", path,
                 with_commas(size.count()), with_commas(limit.count()));
  }
  Container bytes;
  bytes.resize(static_cast<std::size_t>(size.count()));
  TRY(store.read(path, 0, std::as_writable_bytes(std::span(bytes.data(), bytes.size()))));
  return bytes;
}

Status write_new(Store& store, const std::string& path, const std::function<Status(WritableFile&)>& write) {
  std::unique_ptr<WritableFile> file = TRY(store.create(path));
  TRY(write(*file));
  TRY(file->sync());
  return file->close();
}

}  // namespace

// The random number separates processes, also of other machines, the process id forks of one.
std::string writer_name() {
  static const std::uint32_t random = std::random_device()();
  static std::atomic<std::int64_t> count = 0;
  return fmt::format("{}-{:08x}-{}", ::getpid(), random, ++count);
}

std::string unfinished_name(std::string_view path, std::string_view ending) {
  const std::string_view folder = path.substr(0, path.rfind('/') + 1);  // with its '/'
  return fmt::format("{}.{}.{}{}", folder, path.substr(folder.size()), writer_name(), ending);
}

Result<std::vector<std::byte>> read_all(Store& store, std::string_view path, Bytes limit) {
  return read_whole<std::vector<std::byte>>(store, path, limit);
}

Result<std::string> read_text(Store& store, std::string_view path, Bytes limit) {
  return read_whole<std::string>(store, path, limit);
}

Status write_whole(Store& store, std::string_view path, const std::function<Status(WritableFile&)>& write) {
  const std::string temporary = unfinished_name(path, kUnfinished);
  Status written = write_new(store, temporary, write);
  if (written.ok()) written = store.rename(temporary, path);
  if (!written.ok()) {
    (void)store.remove(temporary);  // best effort: the first error is the one to report
    return written;
  }
  return store.sync_dir(parent_of(path));
}

Status remove_unfinished(Store& store, std::string_view path) {
  const std::string folder(parent_of(path));
  const std::string begin = fmt::format(".{}.", path.substr(path.rfind('/') + 1));
  for (const std::string& name : TRY(store.list(folder))) {
    if (!name.starts_with(begin) || !name.ends_with(kUnfinished) || name.size() <= begin.size() + kUnfinished.size())
      continue;
    // A writer_name: not the rest of another file's name.
    const std::string_view writer =
        std::string_view(name).substr(begin.size(), name.size() - begin.size() - kUnfinished.size());
    if (writer.find_first_not_of("0123456789abcdef-") != writer.npos) continue;
    TRY(store.remove(folder.empty() ? name : folder + "/" + name));
  }
  return {};
}

Status write_whole(Store& store, std::string_view path, std::span<const std::byte> bytes) {
  return write_whole(store, path, [&](WritableFile& file) { return file.append(bytes); });
}

Status write_whole(Store& store, std::string_view path, std::string_view text) {
  return write_whole(store, path, std::as_bytes(std::span(text.data(), text.size())));
}

Status make_dirs_synced(Store& store, std::string_view dir) {
  TRY(store.make_dirs(dir));
  std::string folder;
  for (const std::string& name : TRY(split_dir_path(dir))) {
    TRY(store.sync_dir(folder));
    folder += (folder.empty() ? "" : "/") + name;
  }
  return Done{};
}

Status copy_tree(Store& from, Store& to, std::string_view dir) {
  const std::string prefix = dir.empty() ? "" : std::string(dir) + "/";
  for (const std::string& name : TRY(from.list(dir))) {
    const std::string path = prefix + name;
    if (name.back() == '/') {
      const std::string_view folder = std::string_view(path).substr(0, path.size() - 1);
      TRY(to.make_dirs(folder));
      TRY(copy_tree(from, to, folder));
      continue;
    }
    std::unique_ptr<WritableFile> file = TRY(to.create(path));
    TRY(file->append(TRY(read_all(from, path))));
    TRY(file->sync());
    TRY(file->close());
  }
  return to.sync_dir(dir);
}

}  // namespace systole
