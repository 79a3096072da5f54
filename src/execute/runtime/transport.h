#pragma once
// Message passing between ranks. A transport knows ranks, messages and time, but no tensors: the algorithm decides
// which message goes where (ground/mesh), the communicator which bytes it holds.
//
// The one operation is an exchange: all sends and receives of this rank in one step of a collective, at once. The
// transport cuts each message into pieces of whole elements. It places or combines each piece on arrival, so it needs
// buffers for pieces, never for messages; a shared-memory transport combines straight out of the ring.
//
// Messages between two ranks arrive in the order in which they were given: by exchange, then by position in the list.
// The k-th message that a sends to b must be the k-th that b expects from a, with the same stamp and size; a mismatch
// is an error that names both.
//
// Errors are final. After a failed exchange every further one fails at once with the same error, on every rank that is
// told or finds its peers gone. To go on, the remaining ranks make new transports.
//
// An exchange can run beside other work: begin() and then advance(). There is no background thread.
//
// Thread safety: one thread at a time; abort() from any.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

// Identifies a message's operation. Both sides compute it and the wire carries it, as 64 bits; so ranks that do
// different things detect it here.
struct MessageStamp {
  std::uint32_t sequence = 0;  // number of the collective in its group; the low 20 bits travel
  int kind = 0;                // a CollectiveKind, or a constant below; 4 bits
  int step = 0;                // step of the algorithm; for a transfer the microbatch; 16 bits
  std::uint32_t shape = 0;     // hash of group, dtype, shape, dims, sum or max and algorithm; for a transfer, of the
                               // value's name, dtype and shape; 24 bits

  static constexpr int kTransfers = 13, kBarrier = 14, kHostBroadcast = 15;

  std::uint64_t packed() const;
  static MessageStamp unpacked(std::uint64_t bits);
};
// "all_reduce #17, step 2"; "transfer #17, microbatch 2".
std::string to_string(const MessageStamp& stamp);
// The text behind a stamp's `shape` hash, where the rank knows it.
using ShapeNames = std::map<std::uint32_t, std::string>;

// A message to send. Its bytes travel in this order: rows of `row` bytes; consecutive rows begin `stride` bytes apart.
// REQUIRES: bytes is a whole number of rows, or at most one row.
struct Outgoing {
  std::int32_t to = -1;
  const std::byte* data = nullptr;
  Bytes bytes;
  Bytes row, stride;                  // row = bytes: contiguous
  std::optional<MessageStamp> stamp;  // its own; else the exchange's
};

// `into[i] += piece[i]`, or max, for `elements` elements. `piece` is aligned to its elements; at the beginning of a
// message to at least 16 bytes.
using CombinePiece = void (*)(std::byte* into, const std::byte* piece, std::int64_t elements);

struct Incoming {
  std::int32_t from = -1;
  std::byte* into = nullptr;
  Bytes bytes;                     // on the wire
  Bytes row, stride;               // of `into`, as in Outgoing; in elements of `into_grain`
  CombinePiece combine = nullptr;  // null: the bytes are copied
  Bytes grain{1};                  // element size on the wire; no piece cuts an element
  Bytes into_grain{1};             // element size in `into`: wider where bf16 is summed in f32
  // Index of an earlier message in this list that must be fully combined before this one begins; -1: none. Several
  // messages that are added into one place are added in list order, so the sum has the same bits in every run.
  int after = -1;
  std::optional<MessageStamp> stamp;  // its own; else the exchange's
};

struct Exchange {
  MessageStamp stamp;
  std::span<const Outgoing> out;
  std::span<const Incoming> in;
  const ShapeNames* names = nullptr;  // for errors
  template <typename Message>
  const MessageStamp& stamp_of(const Message& message) const {
    return message.stamp ? *message.stamp : stamp;
  }
};

// Called when an exchange blocks on a peer, and when it goes on. Short waits, before the thread sleeps, are not
// reported. Runs on the exchange's thread; must allocate nothing.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  virtual void waits(std::int32_t peer, bool to_send, const MessageStamp& stamp) = 0;  // again if the peer changes
  virtual void goes_on() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t num_ranks() const = 0;

  // Begins an exchange; moves no bytes yet. The memory that `exchange` points to must stay until it has ended.
  // REQUIRES: the exchange before has ended.
  // Errors: the one that ended the transport.
  virtual Status begin(const Exchange& exchange) = 0;
  // Advances the exchange; true when it has ended: all `in` are in place, and the memory of `out` may be overwritten
  // (it need not have arrived). `in` and `out` may share memory only where the algorithm no longer needs the old bytes.
  // Without `wait` it does what is possible now. With `wait` it returns when the exchange has ended; if a peer moves no
  // byte for the transport's patience, it fails. Allocates nothing.
  // Errors: io, naming the collective and the rank that is gone, never came or stopped; invalid, naming both ranks and
  // both collectives, if a message is not the expected one; corrupt if what arrives is no message; interrupted after
  // abort().
  virtual Result<bool> advance(bool wait) = 0;
  // begin() and advance(true).
  Status exchange(const Exchange& exchange);

  // Ends the running and all later exchanges with an error of kind interrupted that carries `why`, here and, as soon as
  // they look, on the peers. From any thread, not from a signal handler.
  virtual void abort(const std::string& why) = 0;

  // Total payload bytes written to peers, counted when written, without stamps and sizes.
  virtual Bytes bytes_written() const = 0;

  // Observes waits from now on; null: stops. The observer must outlive that.
  virtual void observe(WaitObserver* observer) = 0;

  // "shm", "loopback", "gloo": for people.
  virtual const char* name() const = 0;
};

// Building blocks of transports.

// The contiguous bytes from byte `at` of the message, at most `most`. REQUIRES: at < bytes.
std::span<const std::byte> run_at(const Outgoing& message, Bytes at, Bytes most);
// Copies bytes [at, at + into.size()) of the message.
void copy_out(const Outgoing& message, Bytes at, std::span<std::byte> into);
// Copies or combines a piece that begins at byte `at` of the message.
// REQUIRES: `at` and the piece's size are whole elements; the piece ends within the message.
void take_piece(const Incoming& message, Bytes at, std::span<const std::byte> piece);

// The errors that all transports share.
Error mismatched_message(std::int32_t here, const MessageStamp& expected, Bytes expected_bytes, std::int32_t peer,
                         const MessageStamp& found, Bytes found_bytes, const ShapeNames* names = nullptr);
// `state` is what is known of the peer: "its process has ended", "its process is stopped", "".
Error missing_rank(std::int32_t here, std::int32_t peer, const MessageStamp& stamp, Seconds patience,
                   const std::string& state);
Error lost_rank(std::int32_t here, std::int32_t peer, const MessageStamp& stamp, const std::string& state);

}  // namespace systole
