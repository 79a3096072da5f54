#pragma once
// Telemetry of a running process: time spans in a ring buffer that survives a kill.
//
// A ring may be in a mapped file. Every record has a number and a checksum, so a reader can tell torn records from
// whole ones, during writing or after SIGKILL (not after a power cut). Recording allocates nothing and makes no system
// call.
//
// The file, little-endian, in 8-byte words:
//   header  0 magic "SYSRING\1"   1 capacity, in records   2 process id   3..7 zero
//   record  0 number, from 1      1 category | track << 32   2 tag   3 begin   4 end (seconds, f64)   5 hash64 of 0..4
// Record n is in slot (n - 1) mod capacity.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

// An interval of a clock's time. The recorder defines the meaning of category, track and tag.
struct Span {
  std::uint32_t category = 0;
  std::uint32_t track = 0;
  std::uint64_t tag = 0;
  Seconds begin{};
  Seconds end{};
  bool operator==(const Span&) const = default;
};

// The result of reading a ring.
struct RingContent {
  std::int64_t process = 0;
  std::int64_t recorded = 0;  // in total, including overwritten ones
  std::int64_t torn = 0;      // slots that hold a broken record
  std::vector<Span> spans;    // oldest first, at most the capacity
};

// A ring of spans. One thread records; any thread or process may read concurrently.
class Ring {
 public:
  // In memory.
  explicit Ring(std::int64_t capacity);
  // In a new file of 64 + 48 * capacity bytes, with all its space reserved.
  // Errors: exists (a ring is never overwritten), not_found (no such folder), no_space, io.
  static Result<std::unique_ptr<Ring>> create(const std::string& path, std::int64_t capacity);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void record(const Span& span) noexcept;
  RingContent read() const;

 private:
  Ring(std::uint64_t* mapped, std::int64_t capacity);

  std::vector<std::uint64_t> owned_;  // when in memory
  std::uint64_t* words_;
  std::int64_t capacity_;
  std::uint64_t recorded_ = 0;
};

// Parses the content of a ring file; `name` is for messages. Errors: corrupt (not a ring, or shorter than its capacity
// says).
Result<RingContent> parse_ring(std::span<const std::byte> file, std::string_view name);

}  // namespace systole
