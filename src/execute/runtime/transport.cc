#include "execute/runtime/transport.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

#include "ground/mesh/collective.h"

namespace systole {
namespace {

constexpr int kKindBits = 4, kStepBits = 16, kShapeBits = 24, kSequenceBits = 20;
static_assert(kKindBits + kStepBits + kShapeBits + kSequenceBits == 64);

constexpr std::uint64_t low(std::uint64_t bits, int count) { return bits & ((std::uint64_t{1} << count) - 1); }

std::string name_of_kind(int kind) {
  if (kind == MessageStamp::kTransfers) return "transfers between stages";
  if (kind == MessageStamp::kBarrier) return "barrier";
  if (kind == MessageStamp::kHostBroadcast) return "broadcast of the hosts";
  if (kind <= static_cast<int>(CollectiveKind::broadcast)) return name_of(static_cast<CollectiveKind>(kind));
  return fmt::format("collective of kind {}", kind);
}

std::string with_shape(const MessageStamp& stamp, const MessageStamp& other, Bytes bytes, const ShapeNames* names) {
  std::string text = fmt::format("{} of {} B", to_string(stamp), bytes.count());
  if (names != nullptr) {
    if (const auto name = names->find(stamp.shape); name != names->end())
      return text + fmt::format(" ({})", name->second);
  }
  return stamp.shape != other.shape ? text + fmt::format(" (shape {:06x})", stamp.shape) : text;
}

// Copies longer than the caches use non-temporal stores: they do not read the destination first and do not evict data
// still in use.
constexpr Bytes kPassesCachesBy = 8 * kMiB;

void copy_past_caches(std::byte* into, const std::byte* from, std::size_t size) {
  constexpr std::size_t kLine = 64, kWord = sizeof(__m128i);
  const std::size_t head = std::min(size, (kWord - reinterpret_cast<std::uintptr_t>(into) % kWord) % kWord);
  std::memcpy(into, from, head);
  into += head, from += head, size -= head;
  for (; size >= kLine; into += kLine, from += kLine, size -= kLine) {
    for (std::size_t at = 0; at < kLine; at += kWord) {
      const __m128i word = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
      _mm_stream_si128(reinterpret_cast<__m128i*>(into + at), word);
    }
  }
  std::memcpy(into, from, size);
  _mm_sfence();  // orders the stores before any later notification
}

// The row and column of byte `at` of a message, and the bytes left in its row.
struct InRow {
  std::int64_t row, column, left;
};
InRow place_in_rows(Bytes at, Bytes bytes, Bytes row) {
  if (row >= bytes) return {0, at.count(), (bytes - at).count()};
  const std::int64_t r = at.count() / row.count(), column = at.count() % row.count();
  return {r, column, row.count() - column};
}

}  // namespace

Status Transport::exchange(const Exchange& exchange) {
  TRY(begin(exchange));
  TRY(advance(true));
  return {};
}

std::uint64_t MessageStamp::packed() const {
  std::uint64_t bits = low(sequence, kSequenceBits);
  bits = bits << kKindBits | low(static_cast<std::uint64_t>(kind), kKindBits);
  bits = bits << kStepBits | low(static_cast<std::uint64_t>(step), kStepBits);
  return bits << kShapeBits | low(shape, kShapeBits);
}

MessageStamp MessageStamp::unpacked(std::uint64_t bits) {
  MessageStamp stamp;
  const auto take = [&](int count) {
    const std::uint64_t value = low(bits, count);
    bits >>= count;
    return value;
  };
  stamp.shape = static_cast<std::uint32_t>(take(kShapeBits));
  stamp.step = static_cast<int>(take(kStepBits));
  stamp.kind = static_cast<int>(take(kKindBits));
  stamp.sequence = static_cast<std::uint32_t>(take(kSequenceBits));
  return stamp;
}

std::string to_string(const MessageStamp& stamp) {
  if (stamp.kind == MessageStamp::kTransfers && stamp.shape != 0)
    return fmt::format("transfer #{}, microbatch {}", stamp.sequence, stamp.step);
  return fmt::format("{} #{}, exchange {}", name_of_kind(stamp.kind), stamp.sequence, stamp.step);
}

std::span<const std::byte> run_at(const Outgoing& message, Bytes at, Bytes most) {
  const InRow place = place_in_rows(at, message.bytes, message.row);
  return {message.data + place.row * message.stride.count() + place.column,
          static_cast<std::size_t>(std::min(place.left, most.count()))};
}

void copy_out(const Outgoing& message, Bytes at, std::span<std::byte> into) {
  while (!into.empty()) {
    const std::span<const std::byte> run = run_at(message, at, Bytes(into.size()));
    std::memcpy(into.data(), run.data(), run.size());
    into = into.subspan(run.size());
    at += Bytes(run.size());
  }
}

void take_piece(const Incoming& message, Bytes at, std::span<const std::byte> piece) {
  const std::int64_t grain = message.grain.count(), into_grain = message.into_grain.count();
  while (!piece.empty()) {
    const InRow place = place_in_rows(at, message.bytes, message.row);
    const std::size_t size = std::min(piece.size(), static_cast<std::size_t>(place.left));
    std::byte* into = message.into + place.row * message.stride.count() + place.column / grain * into_grain;
    if (message.combine == nullptr && message.bytes >= kPassesCachesBy) {
      copy_past_caches(into, piece.data(), size);
    } else if (message.combine == nullptr) {
      std::memcpy(into, piece.data(), size);
    } else {
      message.combine(into, piece.data(), static_cast<std::int64_t>(size) / grain);
    }
    piece = piece.subspan(size);
    at += Bytes(size);
  }
}

Error mismatched_message(std::int32_t here, const MessageStamp& expected, Bytes expected_bytes, std::int32_t peer,
                         const MessageStamp& found, Bytes found_bytes, const ShapeNames* names) {
  return error(ErrorKind::invalid, "rank {} is in {}, but rank {} sent it {}", here,
               with_shape(expected, found, expected_bytes, names), peer,
               with_shape(found, expected, found_bytes, names))
      .coded(ErrorCode::collective_mismatch)
      .hinted("all ranks of a group must run the same collectives in the same order: start them from one plan");
}

Error missing_rank(std::int32_t here, std::int32_t peer, const MessageStamp& stamp, Seconds patience,
                   const std::string& state) {
  return error(ErrorKind::io, "rank {} waited {} for rank {} in {}{}{}", here, to_string(patience), peer,
               to_string(stamp), state.empty() ? "" : ": ", state);
}

Error lost_rank(std::int32_t here, std::int32_t peer, const MessageStamp& stamp, const std::string& state) {
  return error(ErrorKind::io, "rank {} lost rank {} in {}{}{}", here, peer, to_string(stamp), state.empty() ? "" : ": ",
               state);
}

}  // namespace systole
