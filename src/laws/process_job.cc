#include "laws/process_job.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "execute/checkpoint/compare.h"
#include "ground/base/testing/places.h"
#include "operate/observe/run_files.h"

namespace systole::laws {
namespace {

constexpr const char* kJob = R"(systole: 1
name: tiny
model: { family: gpt, layers: 2, width: 32, heads: 2, context: 32, dropout: 0.1 }
data:
  train: { files: text.txt }
  tokenizer: { vocabulary: 300 }
  folder: data
train:
  exact: true
  batch: 6
  microbatches: 2
  steps: 40
  optimizer: { rate: 3e-3, schedule: cosine, warmup: 10% }
  precision: bf16
checkpoint: { every: 4, keep: 2 }
resources: { threads: 2 }
)";

// Sentences of made-up words; all documents differ.
std::string made_up_text() {
  constexpr const char* kWords[] = {"the",  "a",     "small", "river", "stone", "walks", "sees", "old",
                                    "tree", "under", "light", "quiet", "makes", "house", "bird"};
  std::uint64_t state = 7;
  const auto draw = [&state](std::uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  std::string text;
  for (int line = 0; line < 1500; ++line) {
    for (std::uint64_t words = 3 + draw(20); words > 0; --words)
      text += std::string(kWords[draw(std::size(kWords))]) + " ";
    text += std::to_string(line) + ".\n";
  }
  return text;
}

}  // namespace

bool is_sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return true;
#endif
#endif
  return false;
}

void note(const std::string& text) { std::printf("NOTE %s\n", text.c_str()); }

Workshop::Workshop() {
  std::string pattern = (std::filesystem::temp_directory_path() / "systole-laws-XXXXXX").string();
  CHECK(mkdtemp(pattern.data()) != nullptr, "no temporary folder");
  root_ = pattern;
  write("text.txt", made_up_text());
  write("job.yaml", kJob);
}

Workshop::~Workshop() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

void Workshop::write(const std::string& leaf, const std::string& text) const {
  std::ofstream(path(leaf), std::ios::binary) << text;
}

void Workshop::write_secret(const std::string& leaf, const std::string& text) const {
  write(leaf, text);
  std::filesystem::permissions(path(leaf), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

Command Workshop::command(std::vector<std::string> arguments) const {
  Command command;
  command.argv = {SYSTOLE_BINARY_DIR "/src/operate/cli/systole"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
#ifndef SYSTOLE_HAS_CPU
  if (arguments[0] == "run" || arguments[0] == "resume")
    command.argv.insert(command.argv.end(), {"--backend", "reference"});
#endif
  command.cwd = root_;
  return command;
}

Captured Workshop::systole(std::vector<std::string> arguments, Seconds timeout) const {
  return run_captured(command(std::move(arguments)), {.timeout = timeout}).value();
}

std::vector<Event> Workshop::events(const std::string& run) const {
  const std::unique_ptr<Store> store = open_posix_store(root_).value();
  return read_run(*store, run).value().all();
}

std::string Workshop::unplanned_work(const std::string& run, std::int64_t steps) const {
  const std::unique_ptr<Store> store = open_posix_store(path(run)).value();
  const RunRecord record = read_run(*store, "").value();
  CHECK(record.plan, "'{}' has no plan", run);
  const auto counted = last_of<WorkCounted>(record.all());
  std::string differences;
  const auto hold = [&differences](const char* what, std::int64_t is, std::int64_t planned) {
    if (is != planned) differences += fmt::format("{}: {} counted, {} planned\n", what, is, planned);
  };
  hold("steps", counted.steps, steps);
  hold("FLOPs", counted.flops.count(), record.plan->program.executed_flops.count() * steps);
  hold("bytes moved", counted.moved.count(), record.plan->program.moved.count() * steps);
  hold("bytes sent", counted.sent.count(), record.plan->program.sent.count() * steps);
  hold("arena", last_of<MemoryMeasured>(record.all()).arena_high_water.count(), record.plan->memory.arena.count());
  if (counted.flops.count() == 0 || counted.moved.count() == 0) differences += "nothing was counted\n";
  if (record.plan->program.devices > 1 && counted.sent.count() == 0) differences += "nothing was sent\n";
  return differences;
}

std::vector<Turn> Workshop::turns(const std::string& run) const {
  std::vector<Turn> turns;
  for (const Event& event : events(run)) {
    if (const auto* opened = std::get_if<Opened>(&event.body)) turns.push_back({opened->from_step, {}});
    const auto* step = std::get_if<StepEnded>(&event.body);
    if (step != nullptr && !turns.empty() && !turns.back().first) turns.back().first = step->step;
  }
  return turns;
}

std::int64_t Workshop::newest_saved(const std::string& run) const {
  std::int64_t newest = 0;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(path(run + "/checkpoints/manifests"), absent)) {
    const std::filesystem::path& manifest = entry.path();
    if (manifest.extension() == ".json") newest = std::max<std::int64_t>(newest, std::stoll(manifest.stem().string()));
  }
  return newest;
}

std::string Workshop::not_resumed(const std::string& run, std::int64_t saved) const {
  const std::vector<Turn> all = turns(run);
  if (all.empty()) return "no process opened it";
  const Turn& last = all.back();
  if (last.from_step != saved) return fmt::format("began from step {}, not from {}", last.from_step, saved);
  if (last.first && *last.first != saved + 1) return fmt::format("step {} after that of step {}", *last.first, saved);
  return "";
}

std::string Workshop::state_hash(const std::string& run, std::int64_t step) const {
  const std::unique_ptr<Store> store = open_posix_store(path(run)).value();
  return checkpoint::state_hash(checkpoint::open_step({objects_in(*store), "checkpoints"}, step).value()).value();
}

}  // namespace systole::laws
