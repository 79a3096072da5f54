// Files of this machine. The root folder is held open and every path is resolved from it (openat), so the store
// survives a rename of its root. Interrupted calls are repeated and short writes are continued; other failures map
// errno to a kind (base/os_error.h). fdatasync makes a file's bytes durable, fsync of the folder its names.

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "ground/base/fd.h"
#include "ground/base/free_space.h"
#include "ground/base/os_error.h"
#include "ground/store/path.h"
#include "ground/store/private_store.h"
#include "ground/store/readable.h"

namespace systole {
namespace {

constexpr mode_t kPrivate = 0600;
constexpr std::string_view kLockFile = ".systole-lock";  // stays: a lock on a removed file excludes nobody

class DirLock : public FileLock {
 public:
  explicit DirLock(Fd fd) : fd_(std::move(fd)) {}

 private:
  Fd fd_;
};

template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class PosixFile : public WritableFile {
 public:
  PosixFile(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Status append(std::span<const std::byte> bytes) override {
    CHECK(fd_.get() >= 0, "append to '{}' after close", path_);
    while (!bytes.empty()) {
      const ssize_t wrote = uninterrupted([&] { return ::write(fd_.get(), bytes.data(), bytes.size()); });
      if (wrote < 0) return os_error(errno, "write", path_);
      if (wrote == 0) return os_error(EIO, "write", path_);
      bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
    return Done{};
  }

  Status sync() override {
    CHECK(fd_.get() >= 0, "sync of '{}' after close", path_);
    if (uninterrupted([&] { return ::fdatasync(fd_.get()); }) != 0) return os_error(errno, "sync", path_);
    return Done{};
  }

  Status close() override {
    const int fd = fd_.release();
    // Linux frees the descriptor whatever close returns, so close is never repeated.
    if (fd >= 0 && ::close(fd) != 0 && errno != EINTR) return os_error(errno, "close", path_);
    return Done{};
  }

 private:
  Fd fd_;
  std::string path_;
};

// Fills `into` from `offset` of an open file, whose name `path` is in messages.
Status read_at(int fd, std::int64_t offset, std::span<std::byte> into, const std::string& path) {
  while (!into.empty()) {
    const ssize_t got = uninterrupted([&] { return ::pread(fd, into.data(), into.size(), offset); });
    if (got < 0) return os_read_error(errno, "read", path);
    if (got == 0) {
      return error(ErrorKind::corrupt, "'{}' ends at byte {}, {} bytes too early", path, offset, into.size())
          .hinted("the file is truncated: restore it or make it again");
    }
    offset += got;
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return Done{};
}

class OpenFile : public ReadableFile {
 public:
  OpenFile(Fd fd, std::string path, Bytes size) : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}
  Bytes size() const override { return size_; }
  Status read(std::int64_t offset, std::span<std::byte> into) const override {
    return read_at(fd_.get(), offset, into, path_);
  }

 private:
  Fd fd_;
  std::string path_;
  Bytes size_;
};

class PosixStore : public Store, public OpensFiles {
 public:
  PosixStore(Fd root, std::string name, mode_t mode) : root_(std::move(root)), name_(std::move(name)), mode_(mode) {}

  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override { return open_to_write(path, O_TRUNC); }
  Result<std::unique_ptr<WritableFile>> append_to(std::string_view path) override {
    return open_to_write(path, O_APPEND);
  }

  Status read(std::string_view path, std::int64_t offset, std::span<std::byte> into) override {
    TRY(check_file_path(path));
    CHECK(offset >= 0, "read of '{}' at {}", path, offset);
    const Fd fd = TRY(open(path, O_RDONLY, "read"));
    return read_at(fd.get(), offset, into, full(path));
  }

  Result<std::unique_ptr<ReadableFile>> open_to_read(std::string_view path) override {
    TRY(check_file_path(path));
    const Bytes bytes = TRY(size(path));
    return std::unique_ptr<ReadableFile>(
        std::make_unique<OpenFile>(TRY(open(path, O_RDONLY, "read")), full(path), bytes));
  }

  Result<Bytes> size(std::string_view path) override {
    TRY(check_file_path(path));
    struct stat info;
    if (::fstatat(root_.get(), name(path).c_str(), &info, 0) != 0) return os_read_error(errno, "read", full(path));
    if (S_ISDIR(info.st_mode)) return os_read_error(EISDIR, "read", full(path));
    if (!S_ISREG(info.st_mode)) return error(ErrorKind::invalid, "'{}' is a device or a pipe, not a file", full(path));
    return Bytes(static_cast<std::int64_t>(info.st_size));
  }

  Result<bool> exists(std::string_view path) override {
    TRY(check_dir_path(path));
    struct stat info;
    if (::fstatat(root_.get(), name(path).c_str(), &info, 0) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return os_read_error(errno, "look at", full(path));
  }

  Result<std::vector<std::string>> list(std::string_view dir) override {
    TRY(check_dir_path(dir));
    Fd fd = TRY(open(dir, O_RDONLY | O_DIRECTORY, "list"));
    DIR* stream = ::fdopendir(fd.get());
    if (stream == nullptr) return os_read_error(errno, "list", full(dir));
    (void)fd.release();  // the stream owns it now
    const std::unique_ptr<DIR, int (*)(DIR*)> closer(stream, ::closedir);
    std::vector<std::string> names;
    for (errno = 0; const dirent* entry = ::readdir(stream); errno = 0) {
      std::string found = entry->d_name;
      if (found == "." || found == "..") continue;
      if (is_folder(::dirfd(stream), *entry)) found += '/';
      names.push_back(std::move(found));
    }
    if (errno != 0) return os_read_error(errno, "list", full(dir));
    std::sort(names.begin(), names.end());
    return names;
  }

  Status make_dirs(std::string_view dir) override {
    std::string path;
    for (const std::string& part : TRY(split_dir_path(dir))) {
      path += (path.empty() ? "" : "/") + part;
      if (::mkdirat(root_.get(), path.c_str(), 0777) == 0) continue;
      if (errno != EEXIST) return os_error(errno, "create the folder", full(path));
      struct stat info;
      if (::fstatat(root_.get(), path.c_str(), &info, 0) != 0 || !S_ISDIR(info.st_mode)) {
        return error(ErrorKind::exists, "cannot create the folder '{}': a file of that name is there", full(path));
      }
    }
    return Done{};
  }

  Status rename(std::string_view from, std::string_view to) override {
    TRY(check_file_path(from));
    TRY(check_file_path(to));
    if (::renameat(root_.get(), name(from).c_str(), root_.get(), name(to).c_str()) == 0) return Done{};
    return os_error(errno, fmt::format("rename '{}' to", full(from)), full(to));
  }

  Status link(std::string_view from, std::string_view to) override {
    TRY(check_file_path(from));
    TRY(check_file_path(to));
    if (::linkat(root_.get(), name(from).c_str(), root_.get(), name(to).c_str(), 0) == 0) return Done{};
    const int refused = errno;
    // A network file system may have made the link and lost the answer; the retry then reports that the name exists.
    if (refused == EEXIST && is_one_file(from, to)) return Done{};
    const std::string doing = fmt::format("link '{}' to", full(from));
    if (refused != EPERM && refused != EOPNOTSUPP && refused != ENOSYS) return os_error(refused, doing, full(to));
    return error(ErrorKind::unsupported, "cannot {} '{}': this file system has no hard links", doing, full(to))
        .hinted("use a folder on a local disk, NFS, Lustre or another file system with hard links");
  }

  Status remove(std::string_view path) override {
    TRY(check_file_path(path));
    if (::unlinkat(root_.get(), name(path).c_str(), 0) == 0) return Done{};
    if (errno == EISDIR || errno == EPERM) {
      if (::unlinkat(root_.get(), name(path).c_str(), AT_REMOVEDIR) == 0) return Done{};
    }
    if (errno == ENOENT || errno == ENOTDIR) return Done{};
    return os_error(errno, "remove", full(path));
  }

  Status remove_dir(std::string_view dir) override {
    TRY(check_file_path(dir));
    if (::unlinkat(root_.get(), name(dir).c_str(), AT_REMOVEDIR) == 0) return Done{};
    if (errno == ENOENT || errno == ENOTDIR) return Done{};  // ENOTDIR: a link, or a file
    const int number = errno;
    Error why = os_error(number, "remove", full(dir));
    // A mount point, or an entry of a folder without write permission.
    if (number == EBUSY || number == EACCES || number == EPERM) why.kind = ErrorKind::exists;
    return why;
  }

  Status sync_dir(std::string_view dir) override {
    TRY(check_dir_path(dir));
    const Fd fd = TRY(open(dir, O_RDONLY | O_DIRECTORY, "sync the folder"));
    if (uninterrupted([&] { return ::fsync(fd.get()); }) != 0) return os_error(errno, "sync the folder", full(dir));
    return Done{};
  }

  // flock(2); NFS since Linux 2.6.12 maps it to a lock on the server.
  Result<std::unique_ptr<FileLock>> try_lock(std::string_view dir) override {
    TRY(check_dir_path(dir));
    const std::string path = dir.empty() ? std::string(kLockFile) : fmt::format("{}/{}", dir, kLockFile);
    Fd fd = TRY(open(path, O_RDWR | O_CREAT | O_NOFOLLOW, "create"));
    if (uninterrupted([&] { return ::flock(fd.get(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno != ENOLCK && errno != EOPNOTSUPP && errno != ENOSYS) return os_error(errno, "lock", full(path));
      return error(ErrorKind::unsupported, "cannot lock '{}': this file system has no locks", full(path))
          .hinted("mount it with locks (NFS: without 'nolock'; Lustre: with 'flock')");
    }
    return std::unique_ptr<FileLock>(std::make_unique<DirLock>(std::move(fd)));
  }

  Result<Bytes> free_space() override {
    struct statvfs info;
    if (uninterrupted([&] { return ::fstatvfs(root_.get(), &info); }) != 0) {
      return os_error(errno, "ask for the free space of", name_);
    }
    return free_in(info);
  }

 private:
  static std::string name(std::string_view path) { return path.empty() ? "." : std::string(path); }
  std::string full(std::string_view path) const {
    return path.empty() ? name_ : fmt::format("{}{}{}", name_, name_.ends_with('/') ? "" : "/", path);
  }

  bool is_one_file(std::string_view a, std::string_view b) const {
    struct stat of_a {
    }, of_b{};
    return ::fstatat(root_.get(), name(a).c_str(), &of_a, AT_SYMLINK_NOFOLLOW) == 0 &&
           ::fstatat(root_.get(), name(b).c_str(), &of_b, AT_SYMLINK_NOFOLLOW) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
  }

  Result<Fd> open(std::string_view path, int flags, std::string_view doing) const {
    const int fd = uninterrupted([&] { return ::openat(root_.get(), name(path).c_str(), flags | O_CLOEXEC, mode_); });
    if (fd < 0 && (flags & O_ACCMODE) == O_RDONLY) return os_read_error(errno, doing, full(path));
    if (fd < 0) return os_error(errno, doing, full(path));
    return Fd(fd);
  }

  Result<std::unique_ptr<WritableFile>> open_to_write(std::string_view path, int flags) const {
    TRY(check_file_path(path));
    Fd fd = TRY(open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | flags, "create"));
    if (mode_ == kPrivate && ::fchmod(fd.get(), mode_) != 0) return os_error(errno, "keep to its owner", full(path));
    return std::unique_ptr<WritableFile>(std::make_unique<PosixFile>(std::move(fd), full(path)));
  }

  static bool is_folder(int dir, const dirent& entry) {
    if (entry.d_type != DT_UNKNOWN && entry.d_type != DT_LNK) return entry.d_type == DT_DIR;
    struct stat info;
    return ::fstatat(dir, entry.d_name, &info, 0) == 0 && S_ISDIR(info.st_mode);
  }

  Fd root_;
  std::string name_;
  mode_t mode_;
};

Result<std::unique_ptr<Store>> open_folder(std::string root, mode_t mode) {
  Fd fd(uninterrupted([&] { return ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (fd.get() < 0 && errno == ENOTDIR) {
    return error(ErrorKind::invalid, "'{}' is a file, and a folder is needed", root);
  }
  if (fd.get() < 0) return os_read_error(errno, "open the folder", root);
  return std::unique_ptr<Store>(std::make_unique<PosixStore>(std::move(fd), std::move(root), mode));
}

}  // namespace

Result<std::unique_ptr<Store>> open_posix_store(std::string root) { return open_folder(std::move(root), 0666); }
Result<std::unique_ptr<Store>> open_private_store(std::string root) { return open_folder(std::move(root), kPrivate); }

}  // namespace systole
