#pragma once
// Reads the reply to one HTTP/1.1 request (RFC 9112) as its bytes come. As strict as parse_request_head, and the length
// of the body must be known: by Content-Length or by chunks, not by the end of the connection, so that a reply that was
// cut is never taken for whole.
//
//   HttpReplyReader reply;
//   TRY(reply.take("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"));
//   reply.head()->status;  // 200
//   reply.take_body();     // "hel"
//   reply.is_whole();      // false
//
// What a peer can make grow is bounded: the head, the line of a chunk's size, the trailers. The body is not: who takes
// it in pieces holds no more than one.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ground/base/result.h"
#include "ground/net/http_request_head.h"

namespace systole {

struct HttpReplyHead {
  int status = 0;
  HttpHeaders headers;                  // names in lower case
  std::optional<std::uint64_t> length;  // of the body; nothing: it comes in chunks
  const std::string* header(std::string_view name) const { return find_header(headers, name); }
};

class HttpReplyReader {
 public:
  // Errors: io: this is no reply, or more follows its end. Then it takes no more.
  Status take(std::string_view bytes);
  const HttpReplyHead* head() const { return has_head_ ? &head_ : nullptr; }  // null until it is there
  std::string take_body() { return std::exchange(body_, {}); }                // that came since
  bool is_whole() const { return phase_ == Phase::whole; }

 private:
  enum class Phase { head, body, size, chunk, chunk_end, trailers, whole };
  Status advance();
  Status read_head(std::string_view text);
  Status read_size(std::string_view line);
  // The next line, without its end; nothing: it is not there yet. Errors: io: it is too long.
  Result<std::optional<std::string_view>> line(std::size_t most);
  void take_some();

  Phase phase_ = Phase::head;
  bool has_head_ = false;
  HttpReplyHead head_;
  std::string input_;         // not read yet
  std::size_t at_ = 0;        // bytes of it that were
  std::uint64_t left_ = 0;    // of the body, or of the chunk
  std::size_t trailers_ = 0;  // their bytes
  std::string body_;
};

}  // namespace systole
