#include "predict/serving/serving_plan_text.h"

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/draw/text_table.h"
#include "predict/plan/hardware_plan_text.h"

namespace systole {
namespace {

std::string seconds_text(double seconds) { return to_string(Seconds(seconds)); }

// "12 ms (11 ms to 14 ms)": the interval of 95%.
std::string bounded_text(const BoundedNumber& number) {
  const std::string value = seconds_text(number.value), low = seconds_text(number.low),
                    high = seconds_text(number.high);
  return low == high ? value : fmt::format("{} ({} to {})", value, low, high);
}

std::string lengths_text(const char* of, const TokenLengths& lengths) {
  std::string text = fmt::format("{} of {}", of, counted(lengths.mean, "token"));
  if (lengths.distribution == TokenLengths::Distribution::uniform) text += " (uniform)";
  if (lengths.distribution == TokenLengths::Distribution::lognormal)
    text += fmt::format(" (lognormal, sigma {})", lengths.sigma);
  return text;
}

std::string traffic_text(const ServingPlan& plan) {
  const TrafficSpec& traffic = plan.workload.serve.traffic;
  std::string text = plan.words_of_load(plan.asked);
  if (!plan.trace.empty())
    return text + fmt::format(", {} of {}", counted(plan.trace.size(), "request"), traffic.trace);
  if (traffic.pause) text += fmt::format(" who pause {}", to_string(*traffic.pause));
  return text +
         fmt::format(", {}, {}", lengths_text("prompts", traffic.prompt), lengths_text("answers", traffic.answer));
}

std::string objective_text(const ServeSpec& serve) {
  if (!serve.ttft && !serve.tpot) return fmt::format("no more than {:.0f}% refused", 100 * kMostRefused);
  std::string text;
  if (serve.ttft) text = fmt::format("the first token within {}", to_string(*serve.ttft));
  if (serve.tpot) text += fmt::format("{}further ones within {}", text.empty() ? "" : ", ", to_string(*serve.tpot));
  return text + ", of 95%";
}

std::string row_price_text(const ServingRow& row, const std::string& today) {
  if (row.offer) return price_text(*row.offer, today);
  return row.price ? to_string(*row.price) : "price unknown: resources.price says what an hour of it costs";
}

class RowText {
 public:
  RowText(const ServingPlan& plan, const ServingRow& row) : plan_(plan), row_(row) {}

  std::string text() {
    add_memory();
    if (row_.priced.unknown) line("times", "unknown: " + *row_.priced.unknown);
    if (!row_.capacity) return std::move(text_);
    add_times();
    if (row_.carries()) {
      add_capacity();
    } else {
      line("carries", "nothing within the objective: " + row_.lost);
      add_latency(row_.capacity->outcome);
    }
    add_start();
    return std::move(text_);
  }

 private:
  void line(const char* what, const std::string& words) { text_ += fmt::format("  {:<9}{}\n", what, words); }

  void add_memory() {
    const ServingMemory& m = row_.memory;
    line(m.fits() ? "fits" : "memory",
         fmt::format("{}{} of {}", m.fits() ? "" : "does not fit: ", to_string(m.total()), to_string(m.limit)));
    line("",
         fmt::format("{} parameters in {}, {} keys and values{} ({} a slot), {} activations, {} outside",
                     to_string(m.parameters), name_of(plan_.options.parameter), to_string(m.cache),
                     plan_.options.cache_type == DType::f32 ? "" : " in bf16",
                     to_string(Bytes(m.cache.count() / plan_.options.slots)), to_string(m.rest), to_string(m.outside)));
  }

  void add_times() {
    const auto by_size = [](const ServingTimes::BySize& times) {
      std::string text;
      for (const auto& [bucket, time] : times)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_commas(bucket), to_string(time));
      return text;
    };
    line("prefill", by_size(row_.priced.times.prefill) + " (tokens of a piece, time)");
    line("decode", by_size(row_.priced.times.decode) + " (sequences, time of a token of each)");
  }

  void add_latency(const ServingOutcome& outcome) {
    line("",
         fmt::format("first token {}, 95% within {}", bounded_text(outcome.ttft_p50), bounded_text(outcome.ttft_p95)));
    line("", fmt::format("further tokens {}, 95% within {}", bounded_text(outcome.tpot_p50),
                         bounded_text(outcome.tpot_p95)));
    if (outcome.refused + outcome.too_long > 0)
      line("",
           fmt::format("of {}: {} refused, {} with prompts longer than the cache", counted(outcome.requests, "request"),
                       with_commas(outcome.refused), with_commas(outcome.too_long)));
  }

  void add_capacity() {
    const ServingOutcome& most = row_.capacity->outcome;
    line("carries",
         fmt::format("{} a device: {} tokens/s, busy {:.0f}% of the time", plan_.words_of_load(row_.capacity->load),
                     rate_text(most.tokens_per_second), 100 * most.busy));
    add_latency(most);
    std::string replicas = counted(row_.replicas, "replica");
    if (row_.devices > 1) replicas += " on " + counted(row_.machines(), "such offer");
    line("asked", fmt::format("{}: {}, each busy {:.0f}% of the time", plan_.words_of_load(plan_.asked), replicas,
                              100 * row_.asked->busy));
    add_latency(*row_.asked);
    line("cost", fmt::format("{} for a million answer tokens, when it carries its most",
                             million_tokens_text(row_.per_million)));
    line("", row_price_text(row_, plan_.today));
    add_idle();
  }

  // Replicas cost as much while nobody asks: at the traffic that is asked for, a token bears what they idle.
  void add_idle() {
    if (!row_.price) return;
    const DollarsPerHour all = *row_.price * static_cast<double>(row_.machines());
    const double tokens = row_.asked->tokens_per_second * static_cast<double>(row_.replicas);
    const double idle = std::clamp(1 - row_.asked->busy, 0.0, 1.0);
    std::string text = fmt::format("{} at {}: {:.0f}% of it while they idle", to_string(all),
                                   plan_.words_of_load(plan_.asked), 100 * idle);
    if (tokens > 0)
      text += fmt::format("; {} for a million answer tokens then", million_tokens_text(all * Seconds(1e6 / tokens)));
    line("", text);
  }

  void add_start() {
    const std::optional<Seconds> load = row_.load();
    if (!load) return;
    line("start", fmt::format("{} to read the parameters at {}, {} to the first token", to_string(*load),
                              to_string(*row_.disk), to_string(plan_.first_token(row_))));
  }

  const ServingPlan& plan_;
  const ServingRow& row_;
  std::string text_;
};

std::string all_text(const ServingPlan& plan, int width) {
  std::vector<std::vector<std::string>> rows;
  for (const ServingRow& row : plan.rows) {
    const bool carries = row.carries();
    const ServingOutcome outcome = carries ? row.capacity->outcome : ServingOutcome();
    rows.push_back({row.name, carries ? plan.words_of_load(row.capacity->load) : "-",
                    carries ? rate_text(outcome.tokens_per_second) : "-",
                    carries ? seconds_text(outcome.ttft_p95.value) : "-",
                    carries ? seconds_text(outcome.tpot_p95.value) : "-", carries ? with_commas(row.replicas) : "-",
                    carries ? million_tokens_text(row.per_million) : "-", row.lost});
  }
  return table({"offer", "a device carries>", "tokens/s>", "ttft p95>", "tpot p95>", "replicas>", "$/1M tokens>",
                "it lost because"},
               rows, width);
}

}  // namespace

std::string serving_plan_text(const ServingPlan& plan, int width,
                              const std::function<std::string(std::string_view)>& bold) {
  const ServeSpec& serve = plan.workload.serve;
  std::string text = fmt::format("{}: {}, {} of {} at once, {} may wait\n", plan.workload.name,
                                 counted(plan.parameters, "parameter"), counted(plan.options.slots, "sequence"),
                                 counted(plan.options.cache, "token"), with_commas(serve.waiting));
  text += fmt::format("traffic: {}\n", traffic_text(plan));
  text += fmt::format("wanted: {}\n\n", objective_text(serve));
  const ServingRow& best = plan.rows.front();
  text += bold(best.name) + "\n" + RowText(plan, best).text();
  if (plan.rows.size() > 1) text += "\n" + all_text(plan, width);
  text += fmt::format("\nlatencies are simulated: {} of seed {}, with the server's scheduler; intervals are of 95%\n",
                      counted(plan.trace.empty() ? serve.traffic.requests : std::ssize(plan.trace), "request"),
                      serve.traffic.seed);
  const bool measured = std::ranges::all_of(plan.rows, &ServingRow::calibrated);
  return text + (measured ? "times of steps are calibrated on this machine\n"
                          : "how far off the times of steps are is unknown: none was held against a server\n");
}

}  // namespace systole
