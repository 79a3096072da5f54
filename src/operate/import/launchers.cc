#include "operate/import/launchers.h"

#include <algorithm>

#include "operate/import/loader.h"
#include "operate/import/script.h"
#include "operate/import/slurm_flags.h"
#include "operate/import/variables.h"
#include "operate/import/wrappers.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Index of the program after Python's own options: at "-m", or at a file.
std::size_t behind_python(std::span<const ShellWord> words) {
  std::size_t at = 1;
  while (at < words.size() && words[at].text.starts_with('-') && words[at].text != "-m" && words[at].text != "-c")
    at += words[at].text == "-X" || words[at].text == "-W" ? 2 : 1;
  return std::min(at, words.size());
}

bool is_torch_module(std::string_view name) {
  return name == "torch.distributed.run" || name == "torch.distributed.launch";
}

// `python -m torch.distributed.run` is torchrun, and so is `python $(which torchrun)`.
std::size_t torchrun_words(std::span<const ShellWord> words) {
  if (words.empty()) return 0;
  if (program_name(words[0]) == "torchrun") return 1;
  if (!is_python(program_name(words[0]))) return 0;
  const std::size_t at = behind_python(words);
  if (at < words.size() && program_name(words[at]) == "torchrun") return at + 1;
  return at + 1 < words.size() && words[at].text == "-m" && is_torch_module(words[at + 1].text) ? at + 2 : 0;
}

struct Starter {
  std::string_view name, why;
};
constexpr std::string_view kMpi = "ranks are started by the agent, not by MPI";
constexpr std::string_view kRanks = "it starts ranks of its own", kContained =
                                                                      "containers are started by kubernetes "
                                                                      "alone: image";
constexpr Starter kOthers[] = {
    {"mpirun", kMpi},
    {"mpiexec", kMpi},
    {"mpiexec.hydra", kMpi},
    {"orterun", kMpi},
    {"prun", kMpi},
    {"jsrun", kRanks},
    {"aprun", kRanks},
    {"horovodrun", kRanks},
    {"deepspeed", kRanks},
    {"accelerate", kRanks},
    {"accelerate-launch", kRanks},
    {"composer", kRanks},
    {"colossalai", kRanks},
    {"ipexrun", kRanks},
    {"ray", "it starts a cluster of its own"},
    {"apptainer", kContained},
    {"singularity", kContained},
    {"docker", kContained},
    {"podman", kContained},
    {"podman-hpc", kContained},
    {"shifter", kContained},
    {"enroot", kContained},
    {"ssh", "the agent starts ranks on all nodes: ssh.hosts"},
    {"pdsh", "the agent starts ranks on all nodes: ssh.hosts"},
    {"clush", "the agent starts ranks on all nodes: ssh.hosts"},
    {"xargs", "it starts several programs; a workload is one"},
    {"parallel", "it starts several programs; a workload is one"},
    {"tmux", "ranks have no terminal"},
    {"screen", "ranks have no terminal"},
};

// Launchers that are Python modules.
constexpr std::string_view kModules[] = {"accelerate",
                                         "accelerate.commands.launch",
                                         "deepspeed",
                                         "horovod.runner",
                                         "deepspeed.launcher.runner",
                                         "composer.cli.launcher",
                                         "colossalai.cli.cli",
                                         "paddle.distributed.launch",
                                         "mpi4py.futures",
                                         "ray",
                                         "torch.backends.xeon.run_cpu",
                                         "lightning",
                                         "lightning.fabric",
                                         "intel_extension_for_pytorch.cpu.launch"};

void refuse(const std::string& name, std::string_view why, Draft& draft) {
  draft.wrong(error(ErrorKind::unsupported, "{}: {}", origin(name), why)
                  .hinted("paste the line that it starts, such as python3 train.py; each rank finds RANK, "
                          "LOCAL_RANK, WORLD_SIZE and MASTER_ADDR in its environment"));
}

// Names that only launchers have.
bool is_plainly_launcher(std::string_view name) {
  constexpr std::string_view kNames[] = {"torchrun", "srun",    "mpirun", "mpiexec", "horovodrun",
                                         "torchx",   "orterun", "jsrun",  "aprun",   "accelerate-launch"};
  return std::ranges::find(kNames, name) != std::end(kNames) || is_torch_module(name);
}

// A launcher among the words of an unknown program, which probably starts it.
std::string launcher_among(std::span<const ShellWord> words) {
  const bool python = is_python(program_name(words[0]));
  for (std::size_t w = 1; w < words.size(); ++w) {
    const std::string name = program_name(words[w]);
    if (python && name.ends_with(".py")) return "";  // the following words are the script's own
    const bool accelerate = name == "accelerate" && w + 1 < words.size() && words[w + 1].text == "launch";
    const bool said_of_it = words[w - 1].text.find("launcher") != std::string::npos;  // --launcher torchrun
    if (!said_of_it && (accelerate || is_plainly_launcher(name))) return name;
  }
  return "";
}

std::string spelt(std::span<const ShellWord> words) {
  std::string text;
  for (const ShellWord& word : words) text += (text.empty() ? "" : " ") + word.raw;
  return text;
}

// The flag that tells a program where to restore from: its path becomes resume.from, which each rank has in its
// environment, and the word refers to that variable. False: no such flag, or only a shell knows the path.
bool take_restore_from(std::vector<ShellWord>& words, Draft& draft) {
  for (std::size_t w = 1; w < words.size(); ++w) {
    const std::string text = words[w].text, flag = text.substr(0, text.find('='));
    if (flag != "--restore_from" && flag != "--restore-from") continue;
    const bool joined = flag.size() < text.size();
    if (!joined && (w + 1 == words.size() || words[w + 1].text.starts_with('-'))) continue;
    ShellWord& word = words[joined ? w : w + 1];
    const std::string from = joined ? text : text + " " + word.text;
    ShellWord place = word;
    if (joined) place = {text.substr(flag.size() + 1), text.substr(flag.size() + 1), word.expands};
    place = with_variables(place, draft);
    if (place.expands || place.text.empty()) {
      draft.note(from, "stays a word of your program's: what it names is known where a rank runs");
      return false;
    }
    draft.set("resume.from", place.text, from);
    const std::string head = joined ? flag + "=" : "";
    word = {fmt::format("{}${}", head, kResumeFrom), fmt::format("{}\"${}\"", head, kResumeFrom), true};
    draft.note(from, fmt::format("each rank has the place in {}", kResumeFrom));
    return true;
  }
  return false;
}

}  // namespace

ShellWord plain_word(std::string_view text) { return {std::string(text), shell_word(text), false}; }

bool is_python(const std::string& name) { return name.starts_with("python") && !name.ends_with(".py"); }

bool is_torchrun(std::span<const ShellWord> words) { return torchrun_words(words) > 0; }

bool is_launcher(const std::string& name) {
  constexpr std::string_view kOurs[] = {"srun", "torchrun", "torchx"};
  return is_python(name) || std::ranges::find(kOurs, name) != std::end(kOurs) ||
         std::ranges::find(kOthers, name, &Starter::name) != std::end(kOthers);
}

std::string launcher_in(std::string_view script) {
  constexpr std::string_view kParts = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/";
  std::string before;
  while (!script.empty()) {
    const std::size_t begin = std::min(script.find_first_of(kParts), script.size());
    script.remove_prefix(begin);
    const std::string name = base_name(std::string(script.substr(0, script.find_first_not_of(kParts))));
    script.remove_prefix(std::min(script.find_first_not_of(kParts), script.size()));
    if (is_plainly_launcher(name)) return name;
    if (before == "accelerate" && name == "launch") return "accelerate launch";
    before = name;
  }
  return "";
}

void set_command(std::vector<ShellWord> words, Setup setup, const std::string& from, Draft& draft) {
  if (words.empty()) {
    draft.wrong(error(ErrorKind::invalid, "{}: it starts no program", origin(from)).hinted("paste the whole line"));
    return;
  }
  const bool restores = take_restore_from(words, draft);
  std::string name;
  for (const ShellWord& word : words) {
    const std::string base = base_name(word.text);
    if (name.empty() && base.size() > 3 && base.ends_with(".py")) name = base.substr(0, base.size() - 3);
  }
  draft.propose("name", name.empty() ? base_name(words[0].text) : name, from);
  words.insert(words.begin(), setup.wrappers.begin(), setup.wrappers.end());
  const bool expands = std::ranges::any_of(words, [&](const ShellWord& word) {
    return word.expands && !(restores && word.raw.find(kResumeFrom) != std::string::npos);
  });
  // A plain variable matters only to words that are expanded.
  if (!expands)
    std::erase_if(setup.lines, [&](const std::string& line) {
      const std::size_t equals = line.find('=');
      const bool plain = equals != line.npos && line.find(' ') > equals;
      if (plain) draft.left_out(line, "no word of the program has it");
      return plain;
    });
  Node list = Node::sequence();
  if (expands || restores || setup.login || !setup.lines.empty()) {
    std::string script;
    for (const std::string& line : setup.lines) script += line + "\n";
    script += "exec";
    for (const ShellWord& word : words) script += " " + word.raw;
    for (const char* word : {"bash", setup.login ? "-lc" : "-c"}) list.push(word);
    list.push(script);
    if (expands) draft.note(from, "a shell expands its words where each rank runs, with the environment there");
    for (const std::string& line : setup.lines) draft.note(line, "each rank runs it first, in command");
  } else {
    for (const ShellWord& word : words) list.push(word.text);
  }
  draft.set("command", std::move(list), from);
  read_loader(words, draft);
}

void read_srun(std::span<const ShellWord> words, const Setup& setup, Draft& draft) {
  const std::vector<ShellWord> rest =
      read_flags(words, {srun_flags(), sbatch_flags()}, {.program = "srun", .shortened = true}, draft);
  Setup inner = setup;
  inner.wrappers.clear();
  if (!setup.wrappers.empty()) draft.left_out(spelt(setup.wrappers), "it stands around srun, which goes");
  read_program(rest, inner, draft);
}

namespace {

// `bash -c SCRIPT`: imported as a script if it can be parsed. Otherwise each rank runs it unchanged, unless it starts
// ranks itself.
void read_script_word(const Unwrapped& u, const Setup& setup, Draft& draft) {
  Draft trial = draft;
  read_script(u.script->text, "bash -c", trial, setup);
  if (trial.num_errors() == draft.num_errors() && trial.has("command")) {
    draft = std::move(trial);
    return;
  }
  const std::string launcher = launcher_in(u.script->text);
  if (launcher.empty()) {
    draft.note(spelt(u.words), "the script is started once a rank, as it is");
    return set_command(u.words, setup, spelt(u.words), draft);
  }
  if (trial.num_errors() == draft.num_errors()) return refuse(launcher, "its line in the script is not read", draft);
  for (std::size_t e = draft.num_errors(); e < trial.errors().size(); ++e) draft.wrong(trial.errors()[e]);
}

// The words of a script variable used as the program's name.
std::vector<ShellWord> named_program(std::span<const ShellWord> words, const Draft& draft) {
  std::vector<ShellWord> all(words.begin(), words.end());
  for (int depth = 0; depth < 8 && !all.empty(); ++depth) {
    const std::optional<std::vector<ShellWord>> said = words_of_variable(all[0], draft);
    if (!said) break;
    all.erase(all.begin());
    all.insert(all.begin(), said->begin(), said->end());
  }
  return all;
}

}  // namespace

void read_program(std::span<const ShellWord> named, const Setup& outer, Draft& draft) {
  constexpr int kMostDepth = 16;
  if (outer.depth >= kMostDepth) return refuse(spelt(named), "what it starts names itself", draft);
  const std::vector<ShellWord> words = named_program(named, draft);
  if (words.empty()) return set_command({}, outer, "the line", draft);
  const Unwrapped u = unwrap(words);
  Setup setup = outer;
  ++setup.depth;
  setup.login = setup.login || u.login;
  setup.wrappers.insert(setup.wrappers.end(), u.kept.begin(), u.kept.end());
  for (const LeftOut& gone : u.gone) draft.left_out(gone.what, gone.why);
  if (u.sudo) return refuse("sudo", "ranks run as whoever submits them", draft);
  if (u.bare) return refuse("env -i", "it takes away what the agent tells ranks", draft);
  for (const auto& [name, value] : u.variables) {
    const std::string line = "export " + name + "=" + value.raw;
    if (value.expands && !is_agents_variable(name))
      setup.lines.push_back(line);
    else
      draft.variable(name, value.text, line);
  }
  if (u.script) return read_script_word(u, setup, draft);
  if (u.words.empty()) return set_command({}, setup, spelt(words), draft);
  if (u.wrapped() && words_of_variable(u.words[0], draft)) return read_program(u.words, setup, draft);
  const std::string name = program_name(u.words[0]);
  const std::span<const ShellWord> program(u.words);
  if (name == "srun") return read_srun(program.subspan(1), setup, draft);
  if (name == "torchx") return read_torchx(program.subspan(1), draft);
  if (const std::size_t taken = torchrun_words(program)) return read_torchrun(program.subspan(taken), setup, draft);
  const auto other = std::ranges::find(kOthers, name, &Starter::name);
  if (other != std::end(kOthers)) return refuse(name, other->why, draft);
  if (is_python(name)) {
    const std::size_t at = behind_python(program);
    if (at + 1 < program.size() && program[at].text == "-m" &&
        std::ranges::find(kModules, program[at + 1].text) != std::end(kModules))
      return refuse("python -m " + program[at + 1].text, kRanks, draft);
    if (at < program.size())
      if (const auto script = std::ranges::find(kOthers, program_name(program[at]), &Starter::name);
          script != std::end(kOthers))
        return refuse(program_name(program[at]), script->why, draft);
  }
  if (name.starts_with('$') || name.starts_with('`'))
    return refuse(u.words[0].raw, "which program that is stands nowhere here", draft);
  if (const std::string launcher = launcher_among(program); !launcher.empty())
    return refuse(spelt(program), fmt::format("what {} does around {} is not known here", name, launcher), draft);
  const bool shell = name == "sh" || name == "bash";
  for (const ShellWord& word : program)
    if (const std::string launcher = shell ? launcher_in(word.text) : ""; !launcher.empty())
      return refuse(launcher, fmt::format("what {} is given beside it is not read", name), draft);
  if (name.ends_with(".sh") || (shell && program.size() > 1 && program[1].text.ends_with(".sh")))
    draft.note(spelt(program), "what it starts stands in that file; where that is a launcher, import the file instead");
  set_command(u.words, setup, spelt(words), draft);
}

}  // namespace systole
