#pragma once
// The wire format of the rendezvous, little-endian.
//
//   hello    8 bytes kRendezvousMagic, 16 of the run's token; the client sends it first. The reply is the magic alone,
//            also to a client of another version, which is then closed; without the token there is no reply. In a run
//            over TLS all of this is inside TLS (tls.h), and a plain hello with the token gets the reply kRendezvousTls
//            and is closed
//   frame    u32 length of what follows, at most kRendezvousFrame
//   request  u8 operation, u64 generation, u64 holder, i64 number, u32 wait in milliseconds, text key, text value,
//            u8 whether a text `expected` follows
//   reply    u8 outcome, i64 number, text value, u32 count, then per entry: text key, text value, i64 number
//   text     u32 length, then that many bytes
//
// A client has at most one request in progress. The protocol carries plain data only: received bytes are never
// executed.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/net/token.h"

namespace systole {

constexpr std::string_view kRendezvousMagic{"SYSRDV\1\n", 8};
constexpr std::string_view kRendezvousName = kRendezvousMagic.substr(0, 6);  // the same in every version
constexpr std::string_view kRendezvousTls{"SYSRDVT\n", 8};
constexpr std::size_t kRendezvousHello = 8 + RunToken::kSize;
constexpr std::size_t kRendezvousFrame = std::size_t{1} << 20;

enum class RendezvousOp : std::uint8_t {
  set = 1,          // key, value
  get,              // key; waits until it exists and, with `expected`, has another value
  add,              // key, number → number, the sum
  compare_and_set,  // key, expected (none: absent), value → value, the current one
  erase,            // key as a prefix → number of keys removed
  list,             // key as a prefix → entries
  barrier,          // key, number of members, holder as the member, wait
  lease,            // key, holder, wait as its time to live, value as the holder's description
  release,          // key, holder
  leases,           // key as a prefix → entries, number: milliseconds left, below 1: expired
  fence,            // number: the generation that begins
};

struct RendezvousRequest {
  RendezvousOp op = RendezvousOp::get;
  std::uint64_t generation = 0;  // the client's generation; 0: none
  std::uint64_t holder = 0;
  std::int64_t number = 0;
  std::uint32_t wait_ms = 0;
  std::string key, value;
  std::optional<std::string> expected;
  bool operator==(const RendezvousRequest&) const = default;
};

enum class RendezvousOutcome : std::uint8_t {
  ok,
  absent,   // get: absent at the deadline; lease: expired
  differs,  // compare_and_set: the value differs; fence: a later generation is current
  missing,  // barrier: value lists the missing members, number counts them
  taken,    // lease, barrier: another holder has it, value says who
  stale,    // the client's generation is over; number is the current one
  refused,  // value says why: a limit, a wrong argument
};

struct RendezvousEntry {
  std::string key, value;
  std::int64_t number = 0;
  bool operator==(const RendezvousEntry&) const = default;
};

struct RendezvousReply {
  RendezvousOutcome outcome = RendezvousOutcome::ok;
  std::int64_t number = 0;
  std::string value;
  std::vector<RendezvousEntry> entries;
  bool operator==(const RendezvousReply&) const = default;
};

// Whole frames, including the length.
std::vector<std::byte> encode(const RendezvousRequest& request);
std::vector<std::byte> encode(const RendezvousReply& reply);
std::vector<std::byte> encode_hello(const RunToken& token);

// Parses the bytes after the length; accepts arbitrary input. Errors: corrupt.
Result<RendezvousRequest> parse_request(std::span<const std::byte> payload);
Result<RendezvousReply> parse_reply(std::span<const std::byte> payload);
// The frame's length; nothing if it is out of range.
std::optional<std::size_t> frame_length(std::span<const std::byte, 4> header);

}  // namespace systole
