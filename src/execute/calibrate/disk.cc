#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "execute/calibrate/calibrate.h"
#include "ground/base/os_error.h"

namespace systole {
namespace {

constexpr std::size_t kBlock = 1 << 20;

// A file that is removed by the destructor.
struct ScratchFile {
  std::string path;
  int fd = -1;
  ~ScratchFile() {
    if (fd < 0) return;
    ::close(fd);
    ::unlink(path.c_str());
  }
};

CalibratedFact fact(const char* key, Bytes bytes, Seconds time, const char* how) {
  return {key, (bytes / time).count(), CatalogUnit::bytes_per_second, 0,
          fmt::format("{} of a file of {}", how, to_string(bytes))};
}

}  // namespace

Result<std::vector<CalibratedFact>> measure_disk(const std::string& folder, Bytes bytes, Clock& clock) {
  ScratchFile file{folder + "/systole-calibrate-" + std::to_string(::getpid())};
  file.fd = ::open(file.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file.fd < 0) return os_error(errno, "create", file.path);
  const auto blocks = static_cast<std::int64_t>(bytes.count()) / static_cast<std::int64_t>(kBlock);
  std::vector<std::byte> block(kBlock);
  for (std::size_t i = 0; i < kBlock; ++i) block[i] = static_cast<std::byte>(i * 2654435761U >> 13);

  const Seconds began = clock.now();
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::size_t done = 0; done < kBlock;) {
      const ssize_t wrote = ::write(file.fd, block.data() + done, kBlock - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return os_error(errno, "write", file.path);
      done += static_cast<std::size_t>(wrote);
    }
  }
  if (::fsync(file.fd) != 0) return os_error(errno, "sync", file.path);
  const Seconds written = clock.now();

  // A sync of one block: the minimum cost of a commit.
  if (::pwrite(file.fd, block.data(), 4096, 0) != 4096 || ::fsync(file.fd) != 0)
    return os_error(errno, "sync", file.path);
  const Seconds synced = clock.now();

  ::posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED);
  const Seconds reading = clock.now();
  for (std::int64_t b = 0; b < blocks; ++b) {
    const ssize_t got = ::pread(file.fd, block.data(), kBlock, b * static_cast<std::int64_t>(kBlock));
    if (got != static_cast<ssize_t>(kBlock)) return os_read_error(got < 0 ? errno : EIO, "read", file.path);
  }
  const Seconds read = clock.now();

  const Bytes moved(blocks * static_cast<std::int64_t>(kBlock));
  return std::vector<CalibratedFact>{
      fact("disk.write", moved, written - began, "write and fsync"),
      fact("disk.read", moved, read - reading, "read, its pages dropped,"),
      {"disk.fsync", (synced - written).count(), CatalogUnit::seconds, 0, "write of 4 KiB and fsync"}};
}

}  // namespace systole
