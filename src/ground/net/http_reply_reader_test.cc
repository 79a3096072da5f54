#include "ground/net/http_reply_reader.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

struct Read {
  int status = 0;
  std::string body;
  bool whole = false, failed = false;
};

// In pieces of so many bytes.
Read read(std::string_view text, std::size_t piece) {
  HttpReplyReader reply;
  Read got;
  for (; !text.empty() && !got.failed; text.remove_prefix(std::min(piece, text.size()))) {
    got.failed = !reply.take(text.substr(0, piece)).ok();
    got.body += reply.take_body();
  }
  if (reply.head() != nullptr) got.status = reply.head()->status;
  got.whole = reply.is_whole();
  return got;
}

constexpr std::string_view kChunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: "
    "b\r\n\r\n3\r\nabc\r\n1a;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n"
    "0\r\nX-T: 1\r\n\r\n";

TEST(HttpReplyReader, reads_lengths_and_chunks_in_pieces_of_any_size) {
  for (std::size_t piece = 1; piece < 200; ++piece) {
    const Read counted = read("HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello", piece);
    EXPECT_EQ(counted.status, 404) << piece;
    EXPECT_EQ(counted.body, "hello") << piece;
    EXPECT_TRUE(counted.whole) << piece;
    const Read chunked = read(kChunked, piece);
    EXPECT_EQ(chunked.status, 200) << piece;
    EXPECT_EQ(chunked.body, "abcabcdefghijklmnopqrstuvwxyz") << piece;
    EXPECT_TRUE(chunked.whole) << piece;
    EXPECT_FALSE(chunked.failed) << piece;
  }
  EXPECT_TRUE(read("HTTP/1.1 204 No Content\r\n\r\n", 7).whole);
  EXPECT_TRUE(read("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 7).whole);
}

TEST(HttpReplyReader, the_longest_head_is_the_same_in_pieces_of_any_size) {
  const std::string begin = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ";
  const std::string longest = begin + std::string((32 << 10) - begin.size(), 'x'), end = "\r\n\r\n";
  for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}, longest.size() + 3, longest.size() + 5}) {
    EXPECT_TRUE(read(longest + end, piece).whole) << piece;
    EXPECT_TRUE(read(longest + "x" + end, piece).failed) << piece;
  }
}

TEST(HttpReplyReader, no_part_of_a_reply_is_whole) {
  for (std::size_t size = 0; size < kChunked.size(); ++size) {
    const Read part = read(kChunked.substr(0, size), 5);
    EXPECT_FALSE(part.whole) << size;
    EXPECT_FALSE(part.failed) << size;
  }
}

TEST(HttpReplyReader, refuses_what_is_no_reply) {
  const std::string head = "HTTP/1.1 200 OK\r\n", chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  const std::string wrong[] = {
      "garbage",
      "SSH-2.0-OpenSSH\r\n",
      "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\n",
      head + "\r\n",
      head + "Content-Length: -1\r\n\r\n",
      head + "Content-Length: 99999999999999999999999\r\n\r\n",
      head + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
      head + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      head + "Transfer-Encoding: gzip\r\n\r\n",
      head + "no colon\r\n\r\n",
      head + "Content-Length: 1\r\n\r\nab",
      head + std::string(40 << 10, 'x'),
      chunked + "xyz\r\n",
      chunked + "\r\n",
      chunked + "11111111111111111\r\n",
      chunked + std::string(300, '1'),
      chunked + "1\r\nabc",
      chunked + "0\r\n" + std::string(40 << 10, 'x'),
  };
  for (const std::string& text : wrong)
    for (const std::size_t piece : {std::size_t{1}, std::size_t{9}, text.size()})
      EXPECT_TRUE(read(text, piece).failed) << text.substr(0, 80) << " by " << piece;
  std::string trailers = chunked + "0\r\n";
  for (int i = 0; i < 10'000; ++i) trailers += "a: b\r\n";
  EXPECT_TRUE(read(trailers, 1000).failed);
}

}  // namespace
}  // namespace systole
