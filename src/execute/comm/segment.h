#pragma once
// The memory that the ranks of one host share, and its layout. All offsets are multiples of 64, every word that two
// sides write is alone in its 64 bytes:
//
//   SegmentHeader                          256 B     sizes, token, and the error that ends it all
//   RankBlock      for each rank           128 B     who it is, whether it sleeps
//   RingBlock      for each ordered pair   192 B     how far the sender has written and the receiver read
//   bytes          for each ordered pair   ring_bytes
//
// A ring holds messages one after the other: a MessageHeader in 64 bytes, then the payload, filled up to 64. The counts
// of RingBlock are bytes since the beginning, so that written - read is what lies in the ring; the sender alone writes
// one, the receiver alone the other. Nothing is locked.
//
// Waiting: a rank that has nothing to do sets `waits_for_bytes` in each ring it needs something from and their number
// in its `asleep`, looks once more, and sleeps on `asleep` (futex). A sender that finds the flag takes it down and
// counts `asleep` down; whoever brings it to 0 wakes the rank: once for a whole step, not once a message. A sender that
// waits for room, or finds the ring more than half full, wakes at once. All these words are read and written in one
// total order (seq_cst), so that of a flag that is set and bytes that are written one side sees the other's. Each sleep
// ends after a tenth of a second by itself; what a hostile peer writes there costs time, nothing else.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ground/base/fd.h"
#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

struct SegmentHeader {
  static constexpr std::uint64_t kMagic = 0x6d6d6f434c545359;  // "YSTLComm"
  static constexpr std::uint32_t kVersion = 1;
  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t num_ranks = 0;
  std::uint64_t ring_bytes = 0;
  std::uint64_t bytes = 0;                        // of the whole
  std::uint64_t token = 0;                        // hash of the run's token
  alignas(64) std::atomic<std::uint32_t> ending;  // 0: no; 1: `why` is being written; 2: it is written
  std::uint32_t kind;                             // of the error, an ErrorKind
  char why[184];                                  // ends with 0
};
static_assert(sizeof(SegmentHeader) == 256);

struct RankBlock {
  enum State : std::uint32_t { absent, present, left };
  alignas(64) std::atomic<std::int32_t> asleep;  // > 0: sleeping until so many rings have something
  alignas(64) std::atomic<std::uint32_t> state;
  std::atomic<std::int32_t> pid;
  std::atomic<std::int32_t> waits_for;  // a rank; -1: none
};
static_assert(sizeof(RankBlock) == 128);

struct RingBlock {
  alignas(64) std::atomic<std::uint64_t> written;
  std::atomic<std::uint32_t> waits_for_room;  // by the sender
  alignas(64) std::atomic<std::uint64_t> read;
  alignas(64) std::atomic<std::uint32_t> waits_for_bytes;  // by the receiver
};
static_assert(sizeof(RingBlock) == 192);

struct MessageHeader {
  std::uint64_t stamp = 0, bytes = 0;
};
constexpr std::int64_t kLine = 64;

// One mapping of a segment. Thread-safe as far as its words are.
class Segment {
 public:
  // In the memory of this process, for ranks that are its threads. REQUIRES: ring_bytes is a power of two, 256 or more.
  static Result<std::shared_ptr<Segment>> in_process(std::int32_t num_ranks, std::int64_t ring_bytes);
  // A file in memory without a name, so that nothing is left whoever is killed whenever; processes that inherit it or
  // that may look at this process's files map it by `open`.
  static Result<std::shared_ptr<Segment>> create(std::int32_t num_ranks, const std::string& token);
  // `place` as the creator's place() says. Errors: io; corrupt when it is no segment of this version and size; invalid
  // when it belongs to another run.
  static Result<std::shared_ptr<Segment>> open(const std::string& place, const std::string& token);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // "/proc/1234/fd/7"; empty for one in the memory of a process.
  std::string place() const;

  std::int32_t num_ranks() const { return num_ranks_; }
  std::int64_t ring_bytes() const { return ring_bytes_; }
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(data_); }
  RankBlock& rank(std::int32_t r) const { return reinterpret_cast<RankBlock*>(data_ + sizeof(SegmentHeader))[r]; }
  RingBlock& ring(std::int32_t from, std::int32_t to) const;
  std::byte* ring_data(std::int32_t from, std::int32_t to) const;
  bool private_words() const { return fd_.get() < 0; }  // of one process: a cheaper futex

  // The first error to end it stays; wakes all ranks. From any thread.
  void end(const Error& error);
  // The error that ended it. REQUIRES: ended().
  Error ending() const;
  bool ended() const { return header().ending.load() != 0; }

  // Wakes the rank if it sleeps; counts one of the rings off that it waits for, and wakes it after the last.
  void wake(std::int32_t rank);
  void count_down(std::int32_t rank);
  // Returns when woken, when asleep is no longer positive or after `most`.
  void sleep(std::int32_t rank, Seconds most);

 private:
  Segment(std::byte* data, std::int64_t bytes, std::int32_t num_ranks, std::int64_t ring_bytes, Fd fd);
  static Result<std::shared_ptr<Segment>> map(Fd fd, std::int64_t bytes);
  std::size_t pair(std::int32_t from, std::int32_t to) const;
  std::byte* data_;
  std::int64_t bytes_;
  // As they were when the header was checked: nothing that a peer writes later moves an address.
  std::int32_t num_ranks_;
  std::int64_t ring_bytes_;
  Fd fd_;
};

// Of one ring among so many ranks, and of the whole segment: for the plan of memory.
std::int64_t ring_bytes_among(std::int32_t num_ranks);
Bytes segment_bytes(std::int32_t num_ranks);

}  // namespace systole
