#pragma once
// The rendezvous on the wire, little-endian.
//
//   hello    8 bytes kRendezvousMagic, 16 of the run's token; from the client, first. Answered by the magic alone, also
//            where that of the client is another version's, who is then closed; without the token, by nothing at all.
//            Of a run over TLS all of this is inside it (tls.h), and a plain hello with the token is answered by
//            kRendezvousTls and closed
//   frame    u32 length of what follows, at most kRendezvousFrame
//   request  u8 operation, u64 generation, u64 holder, i64 number, u32 wait in milliseconds, text key, text value,
//            u8 whether a text `expected` follows
//   reply    u8 outcome, i64 number, text value, u32 count, as often: text key, text value, i64 number
//   text     u32 length, so many bytes
//
// A client has one request under way at a time. Plain data in and out: nothing that arrives is ever run.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/net/token.h"

namespace systole {

constexpr std::string_view kRendezvousMagic{"SYSRDV\1\n", 8};
constexpr std::string_view kRendezvousName = kRendezvousMagic.substr(0, 6);  // of every version
constexpr std::string_view kRendezvousTls{"SYSRDVT\n", 8};
constexpr std::size_t kRendezvousHello = 8 + RunToken::kSize;
constexpr std::size_t kRendezvousFrame = std::size_t{1} << 20;

enum class RendezvousOp : std::uint8_t {
  set = 1,          // key, value
  get,              // key; wait for it to be there and, with `expected`, to be unlike that
  add,              // key, number → number, the sum
  compare_and_set,  // key, expected (none: absent), value → value, what is there now
  erase,            // key as a prefix → number, how many
  list,             // key as a prefix → entries
  barrier,          // key, number of members, holder as the member, wait
  lease,            // key, holder, wait as its time to live, value as who holds it
  release,          // key, holder
  leases,           // key as a prefix → entries, number: milliseconds left, below 1: ran out
  fence,            // number: the generation that begins
};

struct RendezvousRequest {
  RendezvousOp op = RendezvousOp::get;
  std::uint64_t generation = 0;  // that the asker belongs to; 0: to none
  std::uint64_t holder = 0;
  std::int64_t number = 0;
  std::uint32_t wait_ms = 0;
  std::string key, value;
  std::optional<std::string> expected;
  bool operator==(const RendezvousRequest&) const = default;
};

enum class RendezvousOutcome : std::uint8_t {
  ok,
  absent,   // get: not there by the deadline; lease: it ran out
  differs,  // compare_and_set: something else is there; fence: a later generation runs
  missing,  // barrier: value names who did not come, number counts them
  taken,    // lease, barrier: somebody else has this place, value says who
  stale,    // the asker's generation is over; number is the one that runs
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

// Whole frames, the length first.
std::vector<std::byte> encode(const RendezvousRequest& request);
std::vector<std::byte> encode(const RendezvousReply& reply);
std::vector<std::byte> encode_hello(const RunToken& token);

// What follows the length; any bytes may come. Errors: corrupt.
Result<RendezvousRequest> parse_request(std::span<const std::byte> payload);
Result<RendezvousReply> parse_reply(std::span<const std::byte> payload);
// The length itself: nothing when no frame may be so long (or so short).
std::optional<std::size_t> frame_length(std::span<const std::byte, 4> header);

}  // namespace systole
