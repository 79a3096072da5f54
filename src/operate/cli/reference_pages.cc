#include "operate/cli/reference_pages.h"

#include <CLI/App.hpp>

#include <algorithm>
#include <iterator>

#include "describe/ir/op.h"
#include "describe/spec/run.h"
#include "describe/spec/run_state.h"
#include "describe/spec/workload.h"
#include "operate/cli/command.h"
#include "operate/cli/target_pages.h"
#include "operate/explain/topic.h"
#include "operate/observe/run_metrics.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/node_call.h"
#endif

namespace systole::cli {
namespace {

std::string row_of(const CLI::Option& option) {
  std::string name = option.get_positional() ? option.get_name(true) : option.get_name(false, true);
  if (option.get_positional() && option.nonpositional()) name = option.get_name(false, true);
  const bool flag = option.get_expected_max() == 0;
  return fmt::format("| `{}` | {} | {} | {} |\n", cell(name),
                     flag                    ? "flag"
                     : option.get_required() ? "required"
                                             : "",
                     cell(option.get_default_str()), cell(option.get_description()));
}

std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  if (!text.ends_with('.')) text += '.';
  return text;
}

void describe(const CLI::App& app, const std::string& prefix, std::string& text) {
  const std::string name = prefix + app.get_name();
  const auto children = app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); });
  text += fmt::format("## {}\n\n{}\n\n", name, sentence(app.get_description()));
  std::string rows;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty() && option->get_name(false, true) != "-h,--help") rows += row_of(*option);
  if (!rows.empty()) text += "| option | | default | |\n|---|---|---|---|\n" + rows + "\n";
  for (const CLI::App* child : children) describe(*child, name + " ", text);
}

// "`missing_key`, `unknown_key`": all error codes.
std::string error_codes() {
  std::string names;
  for (std::uint64_t n = 1; const std::optional<ErrorCode> code = error_code_of(n); ++n)
    names += fmt::format("{}`{}`", n == 1 ? "" : ",\n", name_of(*code));
  return names;
}

std::string commands_page() {
  const std::unique_ptr<Clock> clock = real_clock();
  Printer out(*clock);
  Context context{out, *clock, {}, ExitCode::done};
  std::string text = fmt::format(
      "# Commands\n\n{}Data goes to stdout, messages and progress to stderr. The options of `systole` itself may "
      "stand\n"
      "anywhere. What the process ends with: [exit codes](exit-codes.md).\n\n"
      "With `--json` an error is a document: `kind` and `message`; where they are known, `file`, `line`, `col`, "
      "`hint`,\n"
      "`key` (the key of the workload that it is about) and `code`. Messages may change, codes do not. They "
      "are\n{}.\n\n",
      kMadeBy, error_codes());
  describe(*make_app(context), "", text);
  text.pop_back();
  return text;
}

#ifdef SYSTOLE_HAS_CPU
std::string cpu_kernel(const OpDef& op) {
  const cpu::KernelEntry* entry = cpu::entry_of(op.name);
  return entry != nullptr ? entry->kernel : op.view ? "view" : std::string_view(op.name) == "repeat" ? "loop" : "";
}
#else
std::string cpu_kernel(const OpDef&) { return ""; }
#endif

std::string ops_page() {
  std::string text = fmt::format(
      "# Ops\n\n{}What each op is and which of its facets there are. FLOPs and bytes of a call come from `work`; the "
      "reference backend\n"
      "runs every op's `reference`; the cpu column names the kernel.\n\n"
      "| op | types | formula | gradient | sharding | reference | cpu |\n|---|---|---|---|---|---|---|\n",
      kMadeBy);
  for (const OpDef* op : all_ops()) {
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", op->name, cell(op->signature), cell(op->summary),
                        op->gradient ? "yes" : "", op->sharding ? "yes" : "", op->reference ? "yes" : "",
                        cell(cpu_kernel(*op)));
  }
  return text;
}

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
      return "The held-out set was evaluated. `bits_per_byte` is all negative log likelihood / ln 2 / bytes of text.";
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

std::string metrics_page() {
  std::string text = fmt::format(
      "# Metrics\n\n{}A run's events, one JSON object a line in `events/*.jsonl`; each has `event` and `t`, seconds "
      "since the process opened\n"
      "the run. A key that ends in `_s` is in seconds, one that ends in `_bytes` in bytes.\n\n"
      "| event | keys | |\n|---|---|---|\n",
      kMadeBy);
  for (EventBody& body : one_of_each(std::make_index_sequence<std::variant_size_v<EventBody>>())) {
    if (auto* evaluated = std::get_if<Evaluated>(&body)) evaluated->bits_per_byte = 1;
    if (auto* step = std::get_if<StepEnded>(&body)) step->dropped = 0;
    const Node line = parse_json(to_json_line(Event{Seconds(), body}), "event").value();
    std::string keys;
    for (const std::string& key : line.keys())
      if (key != "event" && key != "t") keys += fmt::format("{}`{}`", keys.empty() ? "" : " ", key);
    text += fmt::format("| `{}` | {} | {} |\n", name_of(body), keys, meaning_of(body));
  }
  text += "\n## Categories of time\n\nEach moment of a rank is in exactly one.\n\n| category | |\n|---|---|\n";
  for (int c = 0; c < kNumCategories; ++c) {
    text +=
        fmt::format("| `{}` | {} |\n", name_of(static_cast<Category>(c)), systole::describe(static_cast<Category>(c)));
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

}  // namespace

// A cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string escaped;
  for (char c : text) escaped += c == '|' ? std::string("\\|") : c == '\n' ? std::string(" ") : std::string(1, c);
  return escaped;
}

std::vector<ReferencePage> reference_pages() {
  std::vector<ReferencePage> pages = {{"commands.md", commands_page()},      {"exit-codes.md", exit_codes_reference()},
                                      {"glossary.md", glossary_reference()}, {"keys.md", keys_reference()},
                                      {"metrics.md", metrics_page()},        {"ops.md", ops_page()}};
  std::ranges::move(target_pages(), std::back_inserter(pages));
  return pages;
}

}  // namespace systole::cli
