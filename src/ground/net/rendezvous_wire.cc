#include "ground/net/rendezvous_wire.h"

#include <cstring>
#include <type_traits>

namespace systole {
namespace {

class FrameWriter {
 public:
  template <typename T>
  void number(T value) {
    auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i, bits >>= 8) text_ += static_cast<char>(bits & 0xff);
  }
  void text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    text_ += value;
  }
  std::vector<std::byte> finish() const {
    const std::size_t length = text_.size();
    CHECK(length <= kRendezvousFrame, "a frame of {} bytes", length);
    std::vector<std::byte> bytes(4 + length);
    for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(length >> (8 * i) & 0xff);
    std::memcpy(bytes.data() + 4, text_.data(), length);
    return bytes;
  }

 private:
  std::string text_;
};

// Reads fields of a frame. After the first missing or malformed field everything is zero and ok() false.
class FrameReader {
 public:
  explicit FrameReader(std::span<const std::byte> bytes) : left_(bytes) {}
  template <typename T>
  T number() {
    if (left_.size() < sizeof(T)) return fail_with(T{});
    std::make_unsigned_t<T> bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      const auto byte = std::to_integer<std::make_unsigned_t<T>>(left_[i]);
      bits = static_cast<std::make_unsigned_t<T>>(bits | static_cast<std::make_unsigned_t<T>>(byte << (8 * i)));
    }
    left_ = left_.subspan(sizeof(T));
    return static_cast<T>(bits);
  }
  std::string text() {
    const auto size = number<std::uint32_t>();
    if (size > left_.size()) return fail_with(std::string());
    std::string value(reinterpret_cast<const char*>(left_.data()), size);
    left_ = left_.subspan(size);
    return value;
  }
  bool ok() const { return ok_; }
  bool whole() const { return ok_ && left_.empty(); }
  std::size_t left() const { return left_.size(); }

 private:
  template <typename T>
  T fail_with(T zero) {
    ok_ = false;
    left_ = {};
    return zero;
  }
  std::span<const std::byte> left_;
  bool ok_ = true;
};

Error broken(const char* what) { return error(ErrorKind::corrupt, "the rendezvous got no {}", what); }

}  // namespace

std::vector<std::byte> encode_hello(const RunToken& token) {
  const auto magic = std::as_bytes(std::span(kRendezvousMagic));
  std::vector<std::byte> bytes(magic.begin(), magic.end());
  for (const std::byte byte : token.bytes()) bytes.push_back(byte);
  return bytes;
}

std::vector<std::byte> encode(const RendezvousRequest& request) {
  FrameWriter out;
  out.number(static_cast<std::uint8_t>(request.op));
  out.number(request.generation);
  out.number(request.holder);
  out.number(request.number);
  out.number(request.wait_ms);
  out.text(request.key);
  out.text(request.value);
  out.number(static_cast<std::uint8_t>(request.expected ? 1 : 0));
  if (request.expected) out.text(*request.expected);
  return out.finish();
}

std::vector<std::byte> encode(const RendezvousReply& reply) {
  FrameWriter out;
  out.number(static_cast<std::uint8_t>(reply.outcome));
  out.number(reply.number);
  out.text(reply.value);
  out.number(static_cast<std::uint32_t>(reply.entries.size()));
  for (const RendezvousEntry& entry : reply.entries) {
    out.text(entry.key);
    out.text(entry.value);
    out.number(entry.number);
  }
  return out.finish();
}

Result<RendezvousRequest> parse_request(std::span<const std::byte> payload) {
  FrameReader in(payload);
  RendezvousRequest request;
  const auto op = in.number<std::uint8_t>();
  request.op = static_cast<RendezvousOp>(op);
  request.generation = in.number<std::uint64_t>();
  request.holder = in.number<std::uint64_t>();
  request.number = in.number<std::int64_t>();
  request.wait_ms = in.number<std::uint32_t>();
  request.key = in.text();
  request.value = in.text();
  const auto expects = in.number<std::uint8_t>();
  if (expects == 1) request.expected = in.text();
  const bool known =
      op >= static_cast<std::uint8_t>(RendezvousOp::set) && op <= static_cast<std::uint8_t>(RendezvousOp::fence);
  if (!in.whole() || !known || expects > 1) return broken("request");
  return request;
}

Result<RendezvousReply> parse_reply(std::span<const std::byte> payload) {
  FrameReader in(payload);
  RendezvousReply reply;
  const auto outcome = in.number<std::uint8_t>();
  reply.outcome = static_cast<RendezvousOutcome>(outcome);
  reply.number = in.number<std::int64_t>();
  reply.value = in.text();
  const auto count = in.number<std::uint32_t>();
  constexpr std::size_t kLeast = 4 + 4 + 8;  // minimum bytes of an entry
  if (!in.ok() || outcome > static_cast<std::uint8_t>(RendezvousOutcome::refused) || count > in.left() / kLeast) {
    return broken("reply");
  }
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    RendezvousEntry entry;
    entry.key = in.text();
    entry.value = in.text();
    entry.number = in.number<std::int64_t>();
    reply.entries.push_back(std::move(entry));
  }
  if (!in.whole()) return broken("reply");
  return reply;
}

std::optional<std::size_t> frame_length(std::span<const std::byte, 4> header) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) length |= std::to_integer<std::size_t>(header[i]) << (8 * i);
  if (length == 0 || length > kRendezvousFrame) return std::nullopt;
  return length;
}

}  // namespace systole
