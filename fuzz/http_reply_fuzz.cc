// The reply of an HTTP server (ground/net): whatever bytes arrive, reading ends in an error or in a reply, and all at once
// or byte by byte in the same one.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ground/net/http_reply_reader.h"

namespace {

using namespace systole;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Read {
  HttpReplyReader reply;
  std::string body;
  bool failed = false;
};

Read read_by(std::string_view text, std::size_t piece) {
  Read read;
  for (; !text.empty() && !read.failed; text.remove_prefix(std::min(piece, text.size()))) {
    const Status taken = read.reply.take(text.substr(0, piece));
    read.body += read.reply.take_body();
    read.failed = !taken.ok();
    if (read.failed) require(taken.error().kind == ErrorKind::io && !taken.error().message.empty());
  }
  return read;
}

void check_whole(const Read& read) {
  const HttpReplyHead* head = read.reply.head();
  if (head == nullptr) return require(read.body.empty() && !read.reply.is_whole());
  require(head->status >= 200 && head->status <= 999);
  if (head->length) require(read.body.size() <= *head->length);
  if (head->length && read.reply.is_whole()) require(read.body.size() == *head->length);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Read all = read_by(text, size), bytes = read_by(text, 1);
  check_whole(all);
  check_whole(bytes);
  require(all.failed == bytes.failed && all.body == bytes.body);
  if (all.failed) return 0;
  require(all.reply.is_whole() == bytes.reply.is_whole());
  const HttpReplyHead *once = all.reply.head(), *piecewise = bytes.reply.head();
  require((once == nullptr) == (piecewise == nullptr));
  if (once != nullptr) require(once->status == piecewise->status && once->headers == piecewise->headers);
  return 0;
}
