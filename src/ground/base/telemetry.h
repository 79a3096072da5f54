#pragma once
// What a running process says about itself: counters, and spans of time in a ring that outlives a kill.
//
// A ring may lie in a mapped file. Every record carries its number and a checksum, so whoever reads the file, while it
// is written or after SIGKILL, knows the torn record from the whole ones. (After a power cut the file says nothing.)
// Recording allocates nothing and makes no system call.
//
// The file, little-endian, in 8-byte words:
//   header  0 magic "SYSRING\1"   1 capacity, in records   2 process id   3..7 zero
//   record  0 number, from 1      1 category | track << 32   2 tag   3 begin   4 end (seconds, f64)   5 hash64 of 0..4
// Record n lies in slot (n - 1) mod capacity.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"

namespace systole {

// A fixed set of named counters, each on a cache line of its own. add() is wait-free, from any thread.
class Counters {
 public:
  explicit Counters(std::vector<std::string> names);
  void add(std::size_t counter, std::int64_t amount = 1) noexcept {
    cells_[counter].count.fetch_add(amount, std::memory_order_relaxed);
  }
  std::int64_t value(std::size_t counter) const noexcept {
    return cells_[counter].count.load(std::memory_order_relaxed);
  }
  std::size_t size() const { return names_.size(); }
  const std::vector<std::string>& names() const { return names_; }

 private:
  struct alignas(64) Cell {
    std::atomic<std::int64_t> count{0};
  };
  std::vector<std::string> names_;
  std::unique_ptr<Cell[]> cells_;
};

// A stretch of a clock's time. What category, track and tag mean is the recorder's business.
struct Span {
  std::uint32_t category = 0;
  std::uint32_t track = 0;
  std::uint64_t tag = 0;
  Seconds begin{};
  Seconds end{};
  bool operator==(const Span&) const = default;
};

// What a reader found.
struct RingContent {
  std::int64_t process = 0;
  std::int64_t recorded = 0;  // in all, also those overwritten since
  std::int64_t torn = 0;      // slots that hold a broken record
  std::vector<Span> spans;    // oldest first, at most the capacity
};

// One thread records; any thread or process reads at the same time.
class Ring {
 public:
  // In memory.
  explicit Ring(std::int64_t capacity);
  // In a new file of 64 + 48 * capacity bytes, all of them reserved on the disk.
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

// Errors: not_found, io, corrupt (no ring, or shorter than its capacity says).
Result<RingContent> read_ring(const std::string& path);

// One thread's time cut into categories so that each moment is in exactly one: entering a category ends the stretch of
// the one around it, and leaving resumes it. Totals are exact whatever the ring forgets. Not thread-safe.
class Timeline {
 public:
  // Begins in category `rest`. `ring` may be null; clock and ring must outlive it.
  Timeline(Clock& clock, std::size_t num_categories, std::uint32_t rest, Ring* ring = nullptr, std::uint32_t track = 0);
  ~Timeline() { finish(); }
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  class Scope {
   public:
    Scope(Timeline& timeline, std::uint32_t category, std::uint64_t tag)
        : timeline_(timeline), category_(timeline.category_), tag_(timeline.tag_) {
      timeline_.turn(category, tag);
    }
    ~Scope() { timeline_.turn(category_, tag_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Timeline& timeline_;
    std::uint32_t category_;
    std::uint64_t tag_;
  };
  // Until the scope ends, time belongs to `category`. Scopes nest and end in reverse order.
  [[nodiscard]] Scope in(std::uint32_t category, std::uint64_t tag = 0) { return Scope(*this, category, tag); }

  void finish();                                       // ends the last stretch; totals then stand still. Idempotent
  Seconds total(std::uint32_t category) const;         // of the stretches that have ended
  Seconds elapsed() const { return since_ - began_; }  // the sum of all totals, but for rounding

 private:
  void turn(std::uint32_t category, std::uint64_t tag);

  Clock& clock_;
  Ring* ring_;
  std::uint32_t track_;
  std::vector<Seconds> totals_;
  std::uint32_t category_;
  std::uint64_t tag_ = 0;
  Seconds began_, since_;
  bool finished_ = false;
};

}  // namespace systole
