#include "execute/comm/segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>

#include "ground/base/hash.h"
#include "ground/base/os_error.h"

namespace systole {
namespace {

static_assert(std::atomic<std::int32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

constexpr std::int32_t kMostRanks = 4096;

std::int64_t bytes_of(std::int32_t num_ranks, std::int64_t ring_bytes) {
  const std::int64_t n = num_ranks, pairs = n * (n - 1);
  return static_cast<std::int64_t>(sizeof(SegmentHeader)) + n * static_cast<std::int64_t>(sizeof(RankBlock)) +
         pairs * (static_cast<std::int64_t>(sizeof(RingBlock)) + ring_bytes);
}

void write_header(std::byte* data, std::int32_t num_ranks, std::int64_t ring_bytes, std::uint64_t token) {
  auto* header = new (data) SegmentHeader;  // the rest of the mapping is zero: the initial value of all words
  header->num_ranks = static_cast<std::uint32_t>(num_ranks);
  header->ring_bytes = static_cast<std::uint64_t>(ring_bytes);
  header->bytes = static_cast<std::uint64_t>(bytes_of(num_ranks, ring_bytes));
  header->token = token;
}

Status check_ranks(std::int32_t num_ranks) {
  if (num_ranks >= 1 && num_ranks <= kMostRanks) return {};
  return error(ErrorKind::invalid, "{} ranks in one shared memory: from 1 to {} can be", num_ranks, kMostRanks);
}

long futex(std::atomic<std::int32_t>& word, int operation, bool of_process, std::int32_t value, const timespec* most) {
  return syscall(SYS_futex, reinterpret_cast<std::int32_t*>(&word), operation | (of_process ? FUTEX_PRIVATE_FLAG : 0),
                 value, most, nullptr, 0);
}

}  // namespace

std::int64_t ring_bytes_among(std::int32_t num_ranks) {
  constexpr std::int64_t kLargest = 512 << 10, kSmallest = 16 << 10, kAll = 1 << 20;  // kAll: total of one rank's rings
  const auto share = static_cast<std::uint64_t>(kAll / std::max(1, num_ranks - 1));
  return std::clamp(static_cast<std::int64_t>(std::bit_floor(share)), kSmallest, kLargest);
}

Bytes segment_bytes(std::int32_t num_ranks) { return Bytes(bytes_of(num_ranks, ring_bytes_among(num_ranks))); }

Segment::Segment(std::byte* data, std::int64_t bytes, std::int32_t num_ranks, std::int64_t ring_bytes, Fd fd)
    : data_(data), bytes_(bytes), num_ranks_(num_ranks), ring_bytes_(ring_bytes), fd_(std::move(fd)) {}

Segment::~Segment() { munmap(data_, static_cast<std::size_t>(bytes_)); }

Result<std::shared_ptr<Segment>> Segment::in_process(std::int32_t num_ranks, std::int64_t ring_bytes) {
  TRY(check_ranks(num_ranks));
  CHECK(std::has_single_bit(static_cast<std::uint64_t>(ring_bytes)) && ring_bytes >= 4 * kLine, "rings of {} B",
        ring_bytes);
  const std::int64_t bytes = bytes_of(num_ranks, ring_bytes);
  void* data =
      mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return os_error(errno, "make room for the ranks' messages");
  write_header(static_cast<std::byte*>(data), num_ranks, ring_bytes, 0);
  return std::shared_ptr<Segment>(new Segment(static_cast<std::byte*>(data), bytes, num_ranks, ring_bytes, Fd()));
}

Result<std::shared_ptr<Segment>> Segment::create(std::int32_t num_ranks, const std::string& token) {
  TRY(check_ranks(num_ranks));
  Fd fd(memfd_create("systole-ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.get() < 0) return os_error(errno, "make memory to share between ranks");
  const std::int64_t bytes = segment_bytes(num_ranks).count();
  if (ftruncate(fd.get(), bytes) != 0) return os_error(errno, "size the memory to share between ranks");
  // Sealed so that nobody can truncate it while others have it mapped.
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return os_error(errno, "seal the memory to share between ranks");
  void* data = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return os_error(errno, "map the memory to share between ranks");
  write_header(static_cast<std::byte*>(data), num_ranks, ring_bytes_among(num_ranks), hash64(token));
  return std::shared_ptr<Segment>(
      new Segment(static_cast<std::byte*>(data), bytes, num_ranks, ring_bytes_among(num_ranks), std::move(fd)));
}

Result<std::shared_ptr<Segment>> Segment::open(const std::string& place, const std::string& token) {
  Fd fd(::open(place.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.get() < 0) return os_error(errno, "open the memory shared between ranks", place);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return os_read_error(errno, "look at", place);
  const auto no_segment = [&](std::string why) {
    return error(ErrorKind::corrupt, "'{}' is no memory shared between ranks: {}", place, why);
  };
  if (!S_ISREG(info.st_mode) || info.st_size < static_cast<off_t>(sizeof(SegmentHeader)))
    return no_segment(fmt::format("{} B long", info.st_size));
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return no_segment("it can be cut short");

  void* data = mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return os_error(errno, "map", place);
  const auto* header = static_cast<const SegmentHeader*>(data);
  const auto ranks = static_cast<std::int32_t>(std::min<std::uint32_t>(header->num_ranks, kMostRanks + 1));
  const std::uint64_t found_token = header->token;
  const bool fits = header->magic == SegmentHeader::kMagic && header->version == SegmentHeader::kVersion &&
                    check_ranks(ranks).ok() &&
                    header->ring_bytes == static_cast<std::uint64_t>(ring_bytes_among(ranks)) &&
                    header->bytes == static_cast<std::uint64_t>(segment_bytes(ranks).count()) &&
                    info.st_size == segment_bytes(ranks).count();
  // The segment owns the mapping from here on.
  std::shared_ptr<Segment> segment(
      new Segment(static_cast<std::byte*>(data), info.st_size, ranks, ring_bytes_among(ranks), std::move(fd)));
  if (!fits) return no_segment("its header is not of this version, or its sizes do not agree");
  if (found_token != hash64(token))
    return error(ErrorKind::invalid, "the memory shared between ranks at '{}' belongs to another run", place);
  return segment;
}

std::string Segment::place() const {
  return fd_.get() < 0 ? std::string() : fmt::format("/proc/{}/fd/{}", getpid(), fd_.get());
}

std::size_t Segment::pair(std::int32_t from, std::int32_t to) const {
  CHECK(from != to && from >= 0 && from < num_ranks_ && to >= 0 && to < num_ranks_,
        "a message from rank {} to {} of {}", from, to, num_ranks_);
  return static_cast<std::size_t>(from) * static_cast<std::size_t>(num_ranks_ - 1) +
         static_cast<std::size_t>(to - (to > from ? 1 : 0));
}

RingBlock& Segment::ring(std::int32_t from, std::int32_t to) const {
  std::byte* first = data_ + sizeof(SegmentHeader) + static_cast<std::size_t>(num_ranks_) * sizeof(RankBlock);
  return reinterpret_cast<RingBlock*>(first)[pair(from, to)];
}

std::byte* Segment::ring_data(std::int32_t from, std::int32_t to) const {
  const auto n = static_cast<std::size_t>(num_ranks_);
  std::byte* first = data_ + sizeof(SegmentHeader) + n * sizeof(RankBlock) + n * (n - 1) * sizeof(RingBlock);
  return first + pair(from, to) * static_cast<std::size_t>(ring_bytes_);
}

void Segment::end(const Error& error) {
  SegmentHeader& h = header();
  std::uint32_t not_yet = 0;
  if (!h.ending.compare_exchange_strong(not_yet, 1)) return;
  h.kind = static_cast<std::uint16_t>(error.kind);
  h.code = static_cast<std::uint16_t>(error.code);
  const std::size_t length = std::min(error.message.size(), sizeof h.why - 1);
  std::memcpy(h.why, error.message.data(), length);
  h.why[length] = '\0';
  h.ending.store(2);
  for (std::int32_t r = 0; r < num_ranks_; ++r) wake(r);
}

Error Segment::ending() const {
  const SegmentHeader& h = header();
  if (h.ending.load() != 2) return error(ErrorKind::io, "another rank gave up");
  char why[sizeof h.why];
  std::memcpy(why, h.why, sizeof why);
  why[sizeof why - 1] = '\0';  // the writer is not trusted
  const bool known = h.kind <= static_cast<std::uint16_t>(ErrorKind::internal);
  return error(known ? static_cast<ErrorKind>(h.kind) : ErrorKind::io, "{}", why)
      .coded(error_code_of(h.code).value_or(ErrorCode::none));
}

void Segment::wake(std::int32_t r) {
  if (rank(r).asleep.exchange(0) > 0) futex(rank(r).asleep, FUTEX_WAKE, private_words(), INT_MAX, nullptr);
}

void Segment::count_down(std::int32_t r) {
  if (rank(r).asleep.fetch_sub(1) == 1) futex(rank(r).asleep, FUTEX_WAKE, private_words(), INT_MAX, nullptr);
}

void Segment::sleep(std::int32_t r, Seconds most) {
  const std::int32_t rings = rank(r).asleep.load();
  if (rings <= 0) return;
  const auto nanos = static_cast<std::int64_t>(most.count() * 1e9);
  const timespec time{static_cast<time_t>(nanos / 1'000'000'000), static_cast<long>(nanos % 1'000'000'000)};
  futex(rank(r).asleep, FUTEX_WAIT, private_words(), rings, &time);
}

}  // namespace systole
