#include "operate/observe/run_metrics.h"

namespace systole {
namespace {

constexpr const char* kInfo = "systole_run_info";
constexpr const char* kSeconds = "systole_step_seconds_total";

// Escapes backslash, quote and newline, as the format requires.
std::string label_text(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text;
}

}  // namespace

const std::vector<MetricRow>& metric_rows() {
  static const std::vector<MetricRow> rows = {
      {kInfo, "gauge", "1, with the run's name as its label."},
      {"systole_step", "gauge", "The newest step that ended."},
      {"systole_loss", "gauge", "Its loss: mean negative log likelihood of a label in nats, or mean squared error."},
      {"systole_gradient_norm", "gauge", "Its gradient's norm."},
      {"systole_learning_rate", "gauge", "Its learning rate."},
      {"systole_tokens", "gauge", "Tokens of all rows up to it."},
      {"systole_last_step_seconds", "gauge", "From the end of the step before to its end."},
      {"systole_skipped_steps_total", "counter", "Steps of this process whose gradient was not finite."},
      {kSeconds, "counter", "Time of the steps of this process by category, in seconds."},
      {"systole_evaluation_step", "gauge", "The newest step with an evaluation of the held-out set."},
      {"systole_evaluation_loss", "gauge", "Its loss."},
      {"systole_evaluation_bits_per_byte", "gauge", "Its bits per byte of text."},
      {"systole_checkpoint_step", "gauge", "The newest step whose checkpoint is whole."},
      {"systole_checkpoints_total", "counter", "Checkpoints that this process saved."},
      {"systole_checkpoint_bytes_total", "counter", "Bytes written for them."},
      {"systole_data_cache_hits", "gauge", "Objects of data that data.cache had when the run began."},
      {"systole_data_cache_misses", "gauge", "Objects of data that were fetched then."},
      {"systole_data_cache_fetched_bytes", "gauge", "Bytes fetched for them."},
      {"systole_data_cache_damaged", "gauge", "Objects in data.cache with other bytes than were fetched: dropped."},
      {"systole_resident_bytes", "gauge", "Resident memory of this process, as it was last counted."},
  };
  return rows;
}

void RunMetrics::see(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (const auto* opened = std::get_if<Opened>(&event.body)) {
    run_ = opened->run;
  } else if (const auto* step = std::get_if<StepEnded>(&event.body)) {
    set("systole_step", static_cast<double>(step->step));
    set("systole_loss", step->loss);
    set("systole_gradient_norm", step->gradient_norm);
    set("systole_learning_rate", step->rate);
    set("systole_tokens", static_cast<double>(step->tokens));
    set("systole_last_step_seconds", step->seconds.total().count());
    add("systole_skipped_steps_total", step->skipped ? 1 : 0);
    seconds_ = seconds_.value_or(TimeByCategory());
    *seconds_ += step->seconds;
  } else if (const auto* evaluated = std::get_if<Evaluated>(&event.body)) {
    set("systole_evaluation_step", static_cast<double>(evaluated->step));
    set("systole_evaluation_loss", evaluated->loss);
    if (evaluated->bits_per_byte) set("systole_evaluation_bits_per_byte", *evaluated->bits_per_byte);
  } else if (const auto* saved = std::get_if<CheckpointSaved>(&event.body)) {
    set("systole_checkpoint_step", static_cast<double>(saved->step));
    add("systole_checkpoints_total", 1);
    add("systole_checkpoint_bytes_total", static_cast<double>(saved->bytes.count()));
  } else if (const auto* memory = std::get_if<MemoryMeasured>(&event.body)) {
    set("systole_resident_bytes", static_cast<double>(memory->resident.count()));
  }
}

void RunMetrics::see_cache(std::int64_t hits, std::int64_t misses, Bytes fetched, std::int64_t damaged) {
  const std::lock_guard lock(mutex_);
  set("systole_data_cache_hits", static_cast<double>(hits));
  set("systole_data_cache_misses", static_cast<double>(misses));
  set("systole_data_cache_fetched_bytes", static_cast<double>(fetched.count()));
  set("systole_data_cache_damaged", static_cast<double>(damaged));
}

std::string RunMetrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const MetricRow& row : metric_rows()) {
    std::string lines;
    if (row.name == kInfo && !run_.empty()) {
      lines = fmt::format("{}{{run=\"{}\"}} 1\n", kInfo, label_text(run_));
    } else if (row.name == kSeconds && seconds_) {
      for (int c = 0; c < kNumCategories; ++c) {
        const auto category = static_cast<Category>(c);
        lines += fmt::format("{}{{category=\"{}\"}} {}\n", kSeconds, name_of(category), (*seconds_)[category].count());
      }
    } else if (const auto value = values_.find(row.name); value != values_.end()) {
      lines = fmt::format("{} {}\n", row.name, value->second);
    }
    if (!lines.empty()) text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{3}", row.name, row.help, row.type, lines);
  }
  return text;
}

}  // namespace systole
