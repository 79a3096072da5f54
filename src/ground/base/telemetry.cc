#include "ground/base/telemetry.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "ground/base/hash.h"
#include "ground/base/os_error.h"

namespace systole {
namespace {

static_assert(std::endian::native == std::endian::little, "the ring's words are little-endian");

constexpr std::uint64_t kMagic = 0x01474E4952535953;  // "SYSRING\1"
constexpr std::size_t kHeaderWords = 8;
constexpr std::size_t kRecordWords = 6;

using Record = std::array<std::uint64_t, kRecordWords>;

std::size_t words_of(std::int64_t capacity) { return kHeaderWords + kRecordWords * static_cast<std::size_t>(capacity); }

std::uint64_t checksum(const Record& record) {
  return hash64(std::as_bytes(std::span(record).first(kRecordWords - 1)));
}

std::uint64_t load(const std::uint64_t* word) {
  // Another thread or process may be writing this memory.
  return std::atomic_ref<std::uint64_t>(*const_cast<std::uint64_t*>(word)).load(std::memory_order_relaxed);
}

void store(std::uint64_t* word, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>(*word).store(value, std::memory_order_relaxed);
}

void write_header(std::uint64_t* words, std::int64_t capacity) {
  store(words + 1, static_cast<std::uint64_t>(capacity));
  store(words + 2, static_cast<std::uint64_t>(::getpid()));
  store(words, kMagic);
}

RingContent read_words(const std::uint64_t* words, std::int64_t capacity) {
  RingContent content;
  content.process = static_cast<std::int64_t>(load(words + 2));
  std::vector<std::pair<std::uint64_t, Span>> found;
  for (std::int64_t slot = 0; slot < capacity; ++slot) {
    Record record;
    const std::uint64_t* from = words + words_of(slot);
    for (std::size_t i = 0; i < kRecordWords; ++i) record[i] = load(from + i);
    if (std::all_of(record.begin(), record.end(), [](std::uint64_t word) { return word == 0; })) continue;
    const bool here =
        record[0] > 0 && static_cast<std::int64_t>((record[0] - 1) % static_cast<std::uint64_t>(capacity)) == slot;
    if (!here || record[5] != checksum(record)) {
      ++content.torn;
      continue;
    }
    found.emplace_back(
        record[0], Span{static_cast<std::uint32_t>(record[1]), static_cast<std::uint32_t>(record[1] >> 32), record[2],
                        Seconds(std::bit_cast<double>(record[3])), Seconds(std::bit_cast<double>(record[4]))});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (!found.empty()) content.recorded = static_cast<std::int64_t>(found.back().first);
  for (auto& [number, span] : found) content.spans.push_back(span);
  return content;
}

struct Descriptor {
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

}  // namespace

Ring::Ring(std::int64_t capacity) : owned_(words_of(capacity)), words_(owned_.data()), capacity_(capacity) {
  CHECK(capacity > 0, "a ring of {}", capacity);
  write_header(words_, capacity_);
}

Ring::Ring(std::uint64_t* mapped, std::int64_t capacity) : words_(mapped), capacity_(capacity) {
  write_header(words_, capacity_);
}

Ring::~Ring() {
  if (owned_.empty()) ::munmap(words_, words_of(capacity_) * sizeof(std::uint64_t));
}

Result<std::unique_ptr<Ring>> Ring::create(const std::string& path, std::int64_t capacity) {
  CHECK(capacity > 0, "a ring of {}", capacity);
  if (::access(path.c_str(), F_OK) == 0) return os_error(EEXIST, "create", path);
  // Uses another name until the header is written, so that a reader of a starting run finds a complete ring or none.
  const std::string unfinished = path + ".new";
  const Descriptor file{::open(unfinished.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (file.fd < 0) return os_error(errno, "create", path);
  const std::size_t bytes = words_of(capacity) * sizeof(std::uint64_t);
  // Reserves the space now: otherwise a full disk would raise SIGBUS in the middle of a record.
  if (const int number = ::posix_fallocate(file.fd, 0, static_cast<off_t>(bytes)); number != 0) {
    ::unlink(unfinished.c_str());
    return os_error(number, "reserve space for", path);
  }
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
  if (mapped == MAP_FAILED) return os_error(errno, "map", path);
  // make_unique cannot call the private constructor.
  std::unique_ptr<Ring> ring(new Ring(static_cast<std::uint64_t*>(mapped), capacity));
  if (::rename(unfinished.c_str(), path.c_str()) != 0) return os_error(errno, "create", path);
  return ring;
}

void Ring::record(const Span& span) noexcept {
  Record record = {++recorded_,
                   span.category | std::uint64_t{span.track} << 32,
                   span.tag,
                   std::bit_cast<std::uint64_t>(span.begin.count()),
                   std::bit_cast<std::uint64_t>(span.end.count()),
                   0};
  record[5] = checksum(record);
  std::uint64_t* slot =
      words_ + words_of(static_cast<std::int64_t>((recorded_ - 1) % static_cast<std::uint64_t>(capacity_)));
  for (std::size_t i = 0; i < kRecordWords; ++i) store(slot + i, record[i]);
}

RingContent Ring::read() const { return read_words(words_, capacity_); }

Result<RingContent> parse_ring(std::span<const std::byte> file, std::string_view name) {
  std::vector<std::uint64_t> words(file.size() / sizeof(std::uint64_t));
  if (words.size() < kHeaderWords)
    return error(ErrorKind::corrupt, "'{}' is no ring of spans: it has {} bytes", name, file.size());
  std::memcpy(words.data(), file.data(), words.size() * sizeof(std::uint64_t));
  const std::uint64_t capacity = words[1];
  if (words[0] != kMagic) return error(ErrorKind::corrupt, "'{}' is no ring of spans", name);
  if (capacity == 0 || capacity != (words.size() - kHeaderWords) / kRecordWords) {
    return error(ErrorKind::corrupt, "'{}' has {} bytes and does not hold the {} records it claims", name, file.size(),
                 capacity);
  }
  return read_words(words.data(), static_cast<std::int64_t>(capacity));
}

}  // namespace systole
