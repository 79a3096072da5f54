#include "execute/serve/request_times.h"

#include <algorithm>

#include "ground/base/document.h"

namespace systole {
namespace {

constexpr const char* kPartSeconds = "systole:request_part_seconds";

struct Metric {
  const char *name, *help;
};
constexpr Metric kTotal{"vllm:e2e_request_latency_seconds",
                        "A request, from its first byte to the last of its answer."};
constexpr Metric kFirst{"vllm:time_to_first_token_seconds", "From a request's first byte to its first token."};
constexpr Metric kEach{"vllm:request_time_per_output_token_seconds", "A request's mean time between two tokens."};
constexpr Metric kQueue{"vllm:request_queue_time_seconds", "While no sequence of a request that is left has begun."};
constexpr Metric kPrefill{"vllm:request_prefill_time_seconds", "From then to the first token, waits included."};
constexpr Metric kDecode{"vllm:request_decode_time_seconds", "From the first token to the last, waits included."};
constexpr std::array kMetrics = {kTotal, kFirst, kEach, kQueue, kPrefill, kDecode};

}  // namespace

bool asks_the_model(const HttpAccess& access) { return access.method == "POST" && access.path.starts_with("/v1/"); }

void RequestTimes::Histogram::add(double seconds) {
  ++counts[static_cast<std::size_t>(std::ranges::lower_bound(kBounds, seconds) - kBounds.begin())];
  sum += seconds;
}

void RequestTimes::add_sequence_times(const HttpRecord& record) {
  const std::optional<Seconds> begins = record.marked(kBegins), first = record.marked(kFirstToken),
                               last = record.marked(kLastToken);
  if (!begins || !first || !last) return;
  metrics_[kFirst.name].add(first->count());
  metrics_[kPrefill.name].add((*first - *begins).count());
  metrics_[kDecode.name].add((*last - *first).count());
  if (const std::int64_t tokens = record.counted(kAnswerTokens); tokens > 1)
    metrics_[kEach.name].add((*last - *first).count() / static_cast<double>(tokens - 1));
}

void RequestTimes::add(const HttpAccess& access) {
  if (!asks_the_model(access) || access.status != 200 || access.gone || access.record == nullptr) return;
  const std::lock_guard lock(mutex_);
  metrics_[kTotal.name].add(access.time.count());
  for (const HttpRecord::Part& part : access.record->parts()) {
    const double seconds = std::chrono::duration<double>(part.time).count();
    auto known = parts_.find(part.name);
    if (known == parts_.end()) known = parts_.emplace(part.name, Histogram()).first;
    known->second.add(seconds);
    if (part.name == "queue") metrics_[kQueue.name].add(seconds);
  }
  add_sequence_times(*access.record);
}

std::string RequestTimes::text(const std::string& model) const {
  const std::string label = "model_name=" + to_json(Node(model));
  std::string text;
  const auto samples = [&](std::string_view name, const std::string& labels, const Histogram& of) {
    std::int64_t below = 0;
    for (std::size_t i = 0; i < of.counts.size(); ++i) {
      below += of.counts[i];
      const std::string bound = i < kBounds.size() ? fmt::format("{}", kBounds[i]) : "+Inf";
      text += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bound, below);
    }
    text += fmt::format("{0}_sum{{{1}}} {2}\n{0}_count{{{1}}} {3}\n", name, labels, of.sum, below);
  };
  const auto head = [&](std::string_view name, std::string_view help) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  };
  const std::lock_guard lock(mutex_);
  for (const Metric& metric : kMetrics) {
    head(metric.name, metric.help);
    const auto found = metrics_.find(metric.name);
    samples(metric.name, label, found == metrics_.end() ? Histogram() : found->second);
  }
  head(kPartSeconds, "A request's time in one of its parts, which together are all of it.");
  for (const auto& [part, histogram] : parts_)
    samples(kPartSeconds, fmt::format("{},part=\"{}\"", label, part), histogram);
  return text;
}

}  // namespace systole
