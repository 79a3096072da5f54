#pragma once
// The shared memory of the ranks of one host. All offsets are multiples of 64, and every word that both sides write has
// its own 64-byte line:
//
//   SegmentHeader                          256 B     sizes, token, and the error that ended the segment
//   RankBlock      for each rank           128 B     its process and its sleep state
//   RingBlock      for each ordered pair   192 B     how far the sender has written and the receiver read
//   bytes          for each ordered pair   ring_bytes
//
// A ring holds messages in order: a MessageHeader in 64 bytes, then the payload, padded to 64. The counts of RingBlock
// are total bytes, so written - read bytes are in the ring. Only the sender writes `written`, only the receiver `read`.
// There are no locks.
//
// Waiting. An idle rank sets `waits_for_bytes` in each ring that it needs data from, stores the number of these rings
// in `asleep`, looks once more, and sleeps on `asleep` (futex). A sender that finds the flag clears it and decrements
// `asleep`; whoever brings it to 0 wakes the rank: once per step, not once per message. A sender that waits for room,
// or finds the ring more than half full, wakes the receiver at once. All these words are seq_cst: of a flag set on one
// side and bytes written on the other, at least one side sees the other's. Each sleep ends after 0.1 s by itself, so
// what a hostile peer writes there costs only time.

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
  std::uint64_t bytes = 0;                        // of the whole segment
  std::uint64_t token = 0;                        // hash of the run's token
  alignas(64) std::atomic<std::uint32_t> ending;  // 0: no; 1: `why` is being written; 2: it is written
  std::uint16_t kind;                             // of the error: an ErrorKind
  std::uint16_t code;                             // of the error: an ErrorCode
  char why[184];                                  // NUL-terminated
};
static_assert(sizeof(SegmentHeader) == 256);

struct RankBlock {
  enum State : std::uint32_t { absent, present, left };
  alignas(64) std::atomic<std::int32_t> asleep;  // > 0: sleeping until this many rings have data
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

// One mapping of a segment. Its atomic words are thread-safe.
class Segment {
 public:
  // In private memory, for ranks that are threads of this process.
  // REQUIRES: ring_bytes is a power of two, 256 or more.
  static Result<std::shared_ptr<Segment>> in_process(std::int32_t num_ranks, std::int64_t ring_bytes);
  // An anonymous memory file (memfd), so nothing is left behind, whoever is killed. Processes map it with open() if
  // they inherit it or may access this process's files.
  static Result<std::shared_ptr<Segment>> create(std::int32_t num_ranks, const std::string& token);
  // `place` is the creator's place().
  // Errors: io; corrupt if it is no segment of this version and size; invalid if it belongs to another run.
  static Result<std::shared_ptr<Segment>> open(const std::string& place, const std::string& token);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // "/proc/1234/fd/7"; empty for an in_process segment.
  std::string place() const;

  std::int32_t num_ranks() const { return num_ranks_; }
  std::int64_t ring_bytes() const { return ring_bytes_; }
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(data_); }
  RankBlock& rank(std::int32_t r) const { return reinterpret_cast<RankBlock*>(data_ + sizeof(SegmentHeader))[r]; }
  RingBlock& ring(std::int32_t from, std::int32_t to) const;
  std::byte* ring_data(std::int32_t from, std::int32_t to) const;
  bool private_words() const { return fd_.get() < 0; }  // of one process: allows a cheaper futex

  // Ends the segment and wakes all ranks; the first error is kept. From any thread.
  void end(const Error& error);
  // The error that ended it. REQUIRES: ended().
  Error ending() const;
  bool ended() const { return header().ending.load() != 0; }

  // wake() wakes the rank if it sleeps. count_down() counts off one ring that it waits for, and wakes it after the
  // last.
  void wake(std::int32_t rank);
  void count_down(std::int32_t rank);
  // Returns when woken, when `asleep` is not positive, or after `most`.
  void sleep(std::int32_t rank, Seconds most);

 private:
  Segment(std::byte* data, std::int64_t bytes, std::int32_t num_ranks, std::int64_t ring_bytes, Fd fd);
  static Result<std::shared_ptr<Segment>> map(Fd fd, std::int64_t bytes);
  std::size_t pair(std::int32_t from, std::int32_t to) const;
  std::byte* data_;
  std::int64_t bytes_;
  // Copies taken when the header was checked, so that later writes of a peer change no address.
  std::int32_t num_ranks_;
  std::int64_t ring_bytes_;
  Fd fd_;
};

// The size of one ring among `num_ranks` ranks, and of the whole segment; for the memory plan.
std::int64_t ring_bytes_among(std::int32_t num_ranks);
Bytes segment_bytes(std::int32_t num_ranks);

}  // namespace systole
