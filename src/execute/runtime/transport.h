#pragma once
// How ranks hand bytes to each other. A transport knows ranks, messages and time, and nothing of tensors: which message
// goes where is the algorithm's matter (ground/mesh), which bytes it is made of the communicator's.
//
// The one operation is an exchange: all that this rank sends and receives in one step of a collective, at once. Each
// message is cut into pieces of whole elements as the transport likes; a piece that has arrived is placed or combined
// into its place at once, so that a transport needs room for pieces, never for messages, and one with shared memory
// combines straight out of it.
//
// Between two ranks messages arrive in the order in which they were given: by exchange, then by place in the list. The
// k-th message that a sends to b must be the k-th that b expects from a, of the same stamp and size; anything else is
// an error that names both.
//
// Errors end it: after an exchange that failed, each further one fails at once with the same error, on every rank that
// is told or finds the others gone. Who wants to go on makes new transports among the ranks that are left.
//
// An exchange may be begun and moved on beside other work, by whoever has the time: nothing else moves it.
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

// What a message is a part of; both sides make it for themselves and the wire carries it, as 64 bits. Two ranks that
// do not do the same see it here.
struct MessageStamp {
  std::uint32_t sequence = 0;  // of the collective among those of its group; the low 20 bits travel
  int kind = 0;                // a CollectiveKind, or one of those below; 4 bits
  int step = 0;                // of the algorithm; of a transfer the microbatch; 16 bits
  std::uint32_t shape = 0;     // hash of group, dtype, shape, dims, sum or max and algorithm; of a transfer hash of the
                               // value's name, dtype and shape; 24 bits

  static constexpr int kTransfers = 13, kBarrier = 14, kHostBroadcast = 15;

  std::uint64_t packed() const;
  static MessageStamp unpacked(std::uint64_t bits);
};
// "all_reduce #17, step 2"; "transfer #17, microbatch 2".
std::string to_string(const MessageStamp& stamp);
// What a stamp's `shape`, its 24 bits, is of, where the rank knows it.
using ShapeNames = std::map<std::uint32_t, std::string>;

// The bytes of a message in the order in which they travel: rows of `row` bytes, `stride` bytes from the beginning of
// one to that of the next. REQUIRES: bytes is a whole number of rows, or no more than one.
struct Outgoing {
  std::int32_t to = -1;
  const std::byte* data = nullptr;
  Bytes bytes;
  Bytes row, stride;                  // row = bytes: all in one run
  std::optional<MessageStamp> stamp;  // its own; else the exchange's
};

// `into[i] += piece[i]`, or max, for so many elements; `piece` is aligned to its elements and to 16 bytes at least when
// it begins a message.
using CombinePiece = void (*)(std::byte* into, const std::byte* piece, std::int64_t elements);

struct Incoming {
  std::int32_t from = -1;
  std::byte* into = nullptr;
  Bytes bytes;                     // on the wire
  Bytes row, stride;               // as in Outgoing, of the place; of elements of `into_grain`
  CombinePiece combine = nullptr;  // null: the bytes take their place as they are
  Bytes grain{1};                  // of an element on the wire; no piece cuts one
  Bytes into_grain{1};             // of an element in its place: wider where bf16 is summed in f32
  // An earlier message of this list that must have been combined to its end before this one begins: several that are
  // added into one place are added in the order of the list, so that the sum is the same bits at every run. -1: none.
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

// Told when an exchange cannot go on without a peer, and when it goes on; short waits, before the thread sleeps, are
// not told. On the exchange's thread; the calls must allocate nothing.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  virtual void waits(std::int32_t peer, bool to_send, const MessageStamp& stamp) = 0;  // again for another peer
  virtual void goes_on() = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t num_ranks() const = 0;

  // Begins an exchange; moves nothing yet. What `exchange` points to stays until it has ended.
  // REQUIRES: none that has not ended. Errors: the one that ended the transport before.
  virtual Status begin(const Exchange& exchange) = 0;
  // Moves on with the exchange that was begun; true when it has ended: all `in` are in their places and the memory of
  // `out` may be written again (they need not have arrived). A place of `in` may be a place of `out` only where the
  // algorithm says that the old bytes are not wanted. Without `wait` it does what can be done now, and no more. With
  // it, it returns when the exchange has ended; a peer may let us wait as long as the patience that the transport was
  // made with without moving a byte, no longer. Allocates nothing. Errors: io, naming the rank that is gone, that never
  // came or that stopped, and the collective; invalid, naming both ranks and both collectives, when a message is not
  // the one expected; corrupt when what arrives is no message; interrupted after abort().
  virtual Result<bool> advance(bool wait) = 0;
  // Both in one.
  Status exchange(const Exchange& exchange);

  // Ends what runs and all that follows with an error of kind interrupted that carries `why`, here and, as soon as they
  // look, on the peers; from any thread, not from a signal handler.
  virtual void abort(const std::string& why) = 0;

  // Payload bytes that were written for others since the beginning: counted where they are written, stamps and sizes
  // apart.
  virtual Bytes bytes_written() const = 0;

  // Tells of waits from now on; null: of none. The observer must outlive that.
  virtual void observe(WaitObserver* observer) = 0;

  // "shm", "loopback", "gloo": for people.
  virtual const char* name() const = 0;
};

// What transports are made of.

// The run of bytes in memory that begins at byte `at` of the message, at most `most` long. REQUIRES: at < bytes.
std::span<const std::byte> run_at(const Outgoing& message, Bytes at, Bytes most);
// Copies bytes [at, at + into.size()) of the message.
void copy_out(const Outgoing& message, Bytes at, std::span<std::byte> into);
// Places or combines a piece, which begins at byte `at` of the message. REQUIRES: at and the piece's size are whole
// elements, the end is within the message.
void take_piece(const Incoming& message, Bytes at, std::span<const std::byte> piece);

// The errors that all transports give alike.
Error mismatched_message(std::int32_t here, const MessageStamp& expected, Bytes expected_bytes, std::int32_t peer,
                         const MessageStamp& found, Bytes found_bytes, const ShapeNames* names = nullptr);
// `state` says what is known of the peer: "its process has ended", "its process is stopped", "".
Error missing_rank(std::int32_t here, std::int32_t peer, const MessageStamp& stamp, Seconds patience,
                   const std::string& state);
Error lost_rank(std::int32_t here, std::int32_t peer, const MessageStamp& stamp, const std::string& state);

}  // namespace systole
