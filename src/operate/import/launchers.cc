#include "operate/import/launchers.h"

#include <algorithm>

#include "operate/import/slurm_flags.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_python(const std::string& word) { return base_name(word).starts_with("python"); }

// `python -m torch.distributed.run` is torchrun.
std::size_t torchrun_words(std::span<const ShellWord> words) {
  if (words.empty()) return 0;
  if (base_name(words[0].text) == "torchrun") return 1;
  if (!is_python(words[0].text)) return 0;
  for (std::size_t w = 1; w + 1 < words.size() && words[w].text.starts_with('-'); ++w)
    if (words[w].text == "-m" &&
        (words[w + 1].text == "torch.distributed.run" || words[w + 1].text == "torch.distributed.launch"))
      return w + 2;
  return 0;
}

struct Starter {
  std::string_view name, why;
};
constexpr Starter kOthers[] = {
    {"mpirun", "ranks are started by the agent, not by MPI"},
    {"mpiexec", "ranks are started by the agent, not by MPI"},
    {"horovodrun", "it starts ranks of its own"},
    {"deepspeed", "it starts ranks of its own"},
    {"accelerate", "it starts ranks of its own"},
    {"composer", "it starts ranks of its own"},
    {"ray", "it starts a cluster of its own"},
    {"apptainer", "containers are started by kubernetes alone: image"},
    {"singularity", "containers are started by kubernetes alone: image"},
    {"docker", "containers are started by kubernetes alone: image"},
    {"enroot", "containers are started by kubernetes alone: image"},
};

// Flags of the user's program that a workload could say of a model of its own.
void tell_of_program_flags(const std::vector<ShellWord>& words, Draft& draft) {
  for (const ShellWord& word : words)
    if (word.text.starts_with("--restore_from"))
      draft.left_out(word.text, "stays a word of your program's; a model of Systole's own goes on with systole resume");
}

}  // namespace

ShellWord plain_word(std::string_view text) { return {std::string(text), shell_word(text), false}; }

bool is_launcher(const std::string& name) {
  const std::string base = base_name(name);
  constexpr std::string_view kOurs[] = {"srun", "torchrun", "torchx"};
  return is_python(name) || std::ranges::find(kOurs, base) != std::end(kOurs) ||
         std::ranges::find(kOthers, base, &Starter::name) != std::end(kOthers);
}

void set_command(std::vector<ShellWord> words, const Setup& setup, const std::string& from, Draft& draft) {
  if (words.empty()) {
    draft.wrong(error(ErrorKind::invalid, "{}: it starts no program", origin(from)).hinted("paste the whole line"));
    return;
  }
  tell_of_program_flags(words, draft);
  const bool expands = std::ranges::any_of(words, &ShellWord::expands);
  std::string name;
  for (const ShellWord& word : words) {
    const std::string base = base_name(word.text);
    if (name.empty() && base.size() > 3 && base.ends_with(".py")) name = base.substr(0, base.size() - 3);
  }
  draft.propose("name", name.empty() ? base_name(words[0].text) : name, from);
  Node list = Node::sequence();
  if (expands || !setup.empty()) {
    std::string script;
    for (const std::string& line : setup) script += line + "\n";
    script += "exec";
    for (const ShellWord& word : words) script += " " + word.raw;
    for (const char* word : {"bash", "-c"}) list.push(word);
    list.push(script);
    if (expands) draft.left_out(from, "a shell expands its words where each rank runs, with the environment there");
    for (const std::string& line : setup) draft.left_out(line, "each rank runs it first, in command");
  } else {
    for (const ShellWord& word : words) list.push(word.text);
  }
  draft.set("command", std::move(list), from);
}

void read_srun(std::span<const ShellWord> words, const Setup& setup, Draft& draft) {
  const std::vector<ShellWord> rest = read_flags(words, {srun_flags(), sbatch_flags()}, {.program = "srun"}, draft);
  read_program(rest, setup, draft);
}

void read_program(std::span<const ShellWord> words, const Setup& setup, Draft& draft) {
  if (words.empty()) return set_command({}, setup, "the line", draft);
  const std::string name = base_name(words[0].text);
  if (name == "srun") return read_srun(words.subspan(1), setup, draft);
  if (name == "torchx") return read_torchx(words.subspan(1), draft);
  if (const std::size_t taken = torchrun_words(words)) return read_torchrun(words.subspan(taken), setup, draft);
  const auto other = std::ranges::find(kOthers, name, &Starter::name);
  if (other != std::end(kOthers)) {
    draft.wrong(error(ErrorKind::unsupported, "{}: {}", name, other->why)
                    .hinted("paste the line that it starts, such as python3 train.py; each rank finds RANK, "
                            "LOCAL_RANK, WORLD_SIZE and MASTER_ADDR in its environment"));
    return;
  }
  std::string from;
  for (const ShellWord& word : words) from += (from.empty() ? "" : " ") + word.raw;
  set_command({words.begin(), words.end()}, setup, from, draft);
}

}  // namespace systole
