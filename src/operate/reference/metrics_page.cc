// Events of a run, as docs/reference/metrics.md has them.

#include "describe/spec/run.h"
#include "describe/spec/run_state.h"
#include "ground/base/document.h"
#include "operate/observe/run_metrics.h"
#include "operate/reference/reference_page.h"

namespace systole {
namespace {

const char* meaning_of(const EventBody& body) {
  struct Meaning {
    const char* operator()(const Opened&) const {
      return "A process began to work on the run: the first line of its file.";
    }
    const char* operator()(const StepEnded&) const {
      return "A training step ended. `loss` is the mean negative log likelihood of a label in nats, or the mean "
             "squared error; `dropped`, of a mixture of experts whose places are limited, is the share of the choices "
             "that "
             "found none; `seconds` is the time since the step before ended, by category.";
    }
    const char* operator()(const Evaluated&) const {
      return "The held-out set was evaluated. `bits_per_byte` is all negative log likelihood / ln 2 / bytes of text. "
             "`source_losses`, of a mixture, are the losses on its sources.";
    }
    const char* operator()(const CheckpointSaved&) const {
      return "A checkpoint is whole. `bytes` were written for it.";
    }
    const char* operator()(const CheckpointRemoved&) const { return "Retention let a checkpoint go."; }
    const char* operator()(const MemoryMeasured&) const { return "Memory as it was counted."; }
    const char* operator()(const WorkCounted&) const {
      return "Work as the kernels counted it, over all steps of this process.";
    }
    const char* operator()(const Note&) const {
      return "Something a person should know. `took_s` is 0 when it is not about time.";
    }
    const char* operator()(const Stopped&) const {
      return "The process ended in order; a killed one leaves none. `seconds` is all its time, by category.";
    }
    const char* operator()(const StragglerFound&) const {
      return "Of the agent of many ranks, in ranks/agent: a rank held the others up. `kind` is slow, stuck, "
             "lost_message, mismatch or flipped_bit; `collective` is the one that the others waited in.";
    }
    const char* operator()(const Recovered&) const {
      return "Of the agent of many ranks, in ranks/agent: a rank was lost, and a step has ended again. The seconds "
             "follow "
             "each other, from its last sign of life.";
    }
  };
  return std::visit(Meaning{}, body);
}

template <std::size_t... I>
std::vector<EventBody> one_of_each(std::index_sequence<I...>) {
  return {EventBody(std::in_place_index<I>)...};
}

}  // namespace

std::string metrics_page() {
  std::string text = fmt::format(
      "# Metrics\n\n{}A run's events, one JSON object a line in `events/*.jsonl`; each has `event` and `t`, seconds "
      "since the process opened\n"
      "the run. A key that ends in `_s` is in seconds, one that ends in `_bytes` in bytes.\n\n"
      "| event | keys | |\n|---|---|---|\n",
      kMadeBy);
  for (EventBody& body : one_of_each(std::make_index_sequence<std::variant_size_v<EventBody>>())) {
    if (auto* evaluated = std::get_if<Evaluated>(&body)) {
      evaluated->bits_per_byte = 1;
      evaluated->source_losses.emplace();
    }
    if (auto* step = std::get_if<StepEnded>(&body)) step->dropped = 0;
    const Node line = parse_json(to_json_line(Event{Seconds(), body}), "event").value();
    std::string keys;
    for (const std::string& key : line.keys())
      if (key != "event" && key != "t") keys += fmt::format("{}`{}`", keys.empty() ? "" : " ", key);
    text += fmt::format("| `{}` | {} | {} |\n", name_of(body), keys, meaning_of(body));
  }
  text += "\n## Categories of time\n\nEach moment of a rank is in exactly one.\n\n| category | |\n|---|---|\n";
  for (int c = 0; c < kNumCategories; ++c) {
    text += fmt::format("| `{}` | {} |\n", name_of(static_cast<Category>(c)), describe(static_cast<Category>(c)));
  }
  text +=
      "\n## States of a run\n\nThe same word in `systole runs`, in `why`, of a job on a cluster and in JSON.\n\n| "
      "state | |\n"
      "|---|---|\n";
  for (const RunStateText& state : run_states()) text += fmt::format("| `{}` | {} |\n", state.name, state.meaning);
  text +=
      "\n## Over HTTP\n\n`systole run --metrics [HOST:]PORT` serves these at `/metrics`, in the text format of "
      "Prometheus, from the process of rank 0.\nWithout a host it listens on loopback. `kubernetes.metrics_port` asks "
      "for it in a pod. What is not known yet is left out.\n\n| metric | type | |\n|---|---|---|\n";
  for (const MetricRow& row : metric_rows()) text += fmt::format("| `{}` | {} | {} |\n", row.name, row.type, row.help);
  return text;
}

}  // namespace systole
