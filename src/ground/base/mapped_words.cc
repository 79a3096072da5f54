#include "ground/base/mapped_words.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "ground/base/fd.h"
#include "ground/base/os_error.h"

namespace systole {

MappedWords::MappedWords(std::size_t count) : owned_(count), words_(owned_.data()), count_(count) {}

MappedWords::~MappedWords() {
  if (owned_.empty()) ::munmap(words_, count_ * sizeof(std::uint64_t));
}

Result<std::unique_ptr<MappedWords>> MappedWords::create(const std::string& path, std::size_t count) {
  CHECK(count > 0, "a file of {} words", count);
  const Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return os_error(errno, "create", path);
  const std::size_t bytes = count * sizeof(std::uint64_t);
  // Reserves the space now: otherwise a full disk would raise SIGBUS at a later store.
  if (const int number = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); number != 0) {
    ::unlink(path.c_str());
    return os_error(number, "reserve space for", path);
  }
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return os_error(errno, "map", path);
  return std::unique_ptr<MappedWords>(new MappedWords(static_cast<std::uint64_t*>(mapped), count));
}

std::vector<std::uint64_t> MappedWords::copy() const {
  std::vector<std::uint64_t> words(count_);
  for (std::size_t i = 0; i < count_; ++i) words[i] = load(i);
  return words;
}

Result<std::vector<std::uint64_t>> read_words(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return os_read_error(errno, "open", path);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return os_read_error(errno, "look at", path);
  std::vector<std::uint64_t> words(static_cast<std::size_t>(std::max<off_t>(about.st_size, 0)) / sizeof(std::uint64_t));
  const std::size_t bytes = words.size() * sizeof(std::uint64_t);
  std::size_t at = 0;
  while (at < bytes) {
    const ssize_t got =
        ::pread(file.get(), reinterpret_cast<char*>(words.data()) + at, bytes - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_read_error(errno, "read", path);
    if (got == 0) break;
    at += static_cast<std::size_t>(got);
  }
  return words;
}

}  // namespace systole
