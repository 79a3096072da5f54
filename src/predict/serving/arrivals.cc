#include "predict/serving/arrivals.h"

#include <algorithm>
#include <cmath>

#include "ground/base/document.h"
#include "ground/base/philox.h"

namespace systole {
namespace {

// Streams of one seed.
constexpr std::uint64_t kGaps = 0, kPrompts = 1, kAnswers = 2;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 30;

PhiloxBlock bits_of(std::int64_t seed, std::int64_t i, std::uint64_t stream) {
  return philox(static_cast<std::uint64_t>(seed), philox_counter(static_cast<std::uint64_t>(i), stream));
}

std::int64_t drawn_length(const TokenLengths& lengths, const PhiloxBlock& bits) {
  const auto mean = static_cast<double>(lengths.mean);
  double length = mean;
  if (lengths.distribution == TokenLengths::Distribution::uniform)
    length = 1 + std::floor(uniform_f64(bits[0], bits[1]) * (2 * mean - 1));
  if (lengths.distribution == TokenLengths::Distribution::lognormal)
    length = std::exp(std::log(mean) - lengths.sigma * lengths.sigma / 2 +
                      lengths.sigma * normal_pair(bits[0], bits[1]).first);
  return std::clamp<std::int64_t>(std::llround(std::min(length, 1e9)), 1, kMostTokens);
}

Result<ArrivingRequest> read_request(const Node& node) {
  if (!node.is_map()) return node.wrong(R"(a request, as {"at": 0.5, "prompt": 812, "answer": 96})");
  ArrivingRequest request;
  for (const Node::Entry& entry : node.entries()) {
    if (entry.key == "at") {
      const double at = TRY(entry.value.as_double());
      if (!(at >= 0 && std::isfinite(at))) return entry.value.wrong("seconds from the start");
      request.at = Seconds(at);
    } else if (entry.key == "prompt") {
      request.prompt = TRY(entry.value.as_int(1, kMostTokens));
    } else if (entry.key == "answer") {
      request.answer = TRY(entry.value.as_int(1, kMostTokens));
    } else if (entry.key == "key") {
      request.key = TRY(entry.value.as_string());
    }  // other fields of a log mean nothing here
  }
  for (const char* needed : {"at", "prompt", "answer"})
    if (node.find(needed) == nullptr)
      return error(ErrorKind::invalid, "a request without '{}'", needed)
          .at(node.where())
          .hinted(R"({"at": seconds, "prompt": tokens, "answer": tokens})");
  return request;
}

}  // namespace

ArrivingRequest drawn_request(const TrafficSpec& traffic, std::int64_t i) {
  return {Seconds(), drawn_length(traffic.prompt, bits_of(traffic.seed, i, kPrompts)),
          drawn_length(traffic.answer, bits_of(traffic.seed, i, kAnswers))};
}

double drawn_gap(std::int64_t seed, std::int64_t i) {
  const PhiloxBlock bits = bits_of(seed, i, kGaps);
  return -std::log1p(-uniform_f64(bits[0], bits[1]));
}

std::vector<ArrivingRequest> poisson_arrivals(const TrafficSpec& traffic, double rate, std::int64_t count) {
  std::vector<ArrivingRequest> arrivals;
  Seconds now;
  for (std::int64_t i = 0; i < count; ++i) {
    now += Seconds(drawn_gap(traffic.seed, i) / rate);
    arrivals.push_back(drawn_request(traffic, i));
    arrivals.back().at = now;
  }
  return arrivals;
}

std::vector<ArrivingRequest> faster(std::span<const ArrivingRequest> arrivals, double times) {
  std::vector<ArrivingRequest> result(arrivals.begin(), arrivals.end());
  for (ArrivingRequest& request : result) request.at = request.at * (1 / times);
  return result;
}

double rate_of(std::span<const ArrivingRequest> trace) {
  return static_cast<double>(trace.size() - 1) / (trace.back().at - trace.front().at).count();
}

Result<std::vector<ArrivingRequest>> read_trace(std::string_view text, const std::string& filename) {
  std::vector<ArrivingRequest> trace;
  int line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view words = text.substr(begin, end - begin);
    ++line;
    begin = end + 1;
    if (words.find_first_not_of(" \t\r") == words.npos) continue;
    const auto request = [&]() -> Result<ArrivingRequest> { return read_request(TRY(parse_json(words, filename))); }();
    if (!request.ok()) {
      Error wrong = request.error();
      wrong.where = Where{filename, line, wrong.where.col};
      return wrong;
    }
    trace.push_back(*request);
  }
  std::ranges::stable_sort(trace, {}, &ArrivingRequest::at);
  if (trace.size() < 2 || trace.front().at == trace.back().at)
    return error(ErrorKind::invalid, "a trace of fewer than 2 requests at different times")
        .at({filename, 0, 0})
        .hinted("record more of the traffic");
  return trace;
}

}  // namespace systole
