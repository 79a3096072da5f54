#pragma once
// The parts of a request's time (ground/net/http_record.h) as a server has them, and sums of them for /metrics.
//
//   receive   the server's: the first byte to the last of the body
//   turn      waits for the routes' thread, on which requests are read, and vectors written, in turn
//   encode    is read and checked; its template, tokens and grammar
//   queue, wait, prefill, decode, sample   where its furthest sequence is (SequencePart)
//   vectors   texts of it are computed, from the first batch with one to the last
//   text      the answer's vectors become text
//   send      the server's: the answer is complete, and its last bytes leave
//   handle    any other route
//
// A stream's earlier bytes leave while it is decoded: that is no part of its own.

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "ground/net/http_server.h"

namespace systole {

constexpr std::string_view kTurn = "turn", kEncode = "encode", kVectors = "vectors", kText = "text";
// Marks: a sequence of it begins; its first token, and its last, is there. Count: tokens of its answers.
constexpr std::string_view kBegins = "begins", kFirstToken = "first_token", kLastToken = "last_token",
                           kAnswerTokens = "completion_tokens";

// Whether the model computes for it, if nothing refuses it.
bool asks_the_model(const HttpAccess& access);

// Histograms of answered requests. Thread-safe.
class RequestTimes {
 public:
  void add(const HttpAccess& access);
  // Prometheus text; where a metric means the same as one of vLLM's, it has that name.
  std::string text(const std::string& model) const;

 private:
  static constexpr std::array<double, 19> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                                     2.5,   5,      10,    25,   50,    100,  250, 500,  1000};
  struct Histogram {
    std::array<std::int64_t, kBounds.size() + 1> counts = {};  // the last: above all bounds
    double sum = 0;
    void add(double seconds);
  };
  void add_sequence_times(const HttpRecord& record);

  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, Histogram, std::less<>> metrics_, parts_;
};

}  // namespace systole
