#include "operate/import/script.h"

#include <algorithm>

#include "operate/import/launchers.h"
#include "operate/import/slurm_flags.h"

namespace systole {
namespace {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

enum class Role { nothing, setup, talk, places, other, python, launcher };

struct Known {
  std::string_view name;
  Role role;
  std::string_view why;
};
constexpr std::string_view kNoRank = "it starts no rank", kInstalls = "the image has it: systole render --on docker";
constexpr Known kKnown[] = {
    {"module", Role::setup, ""},
    {"ml", Role::setup, ""},
    {"source", Role::setup, ""},
    {".", Role::setup, ""},
    {"conda", Role::setup, ""},
    {"mamba", Role::setup, ""},
    {"micromamba", Role::setup, ""},
    {"spack", Role::setup, ""},
    {"ulimit", Role::setup, ""},
    {"cd", Role::setup, ""},
    {"export", Role::setup, ""},
    {"unset", Role::setup, ""},
    {"umask", Role::setup, ""},
    {"set", Role::nothing, ""},
    {"wait", Role::nothing, ""},
    {"true", Role::nothing, ""},
    {"exit", Role::nothing, ""},
    {":", Role::nothing, ""},
    {"shopt", Role::nothing, ""},
    {"echo", Role::talk, kNoRank},
    {"printf", Role::talk, kNoRank},
    {"date", Role::talk, kNoRank},
    {"pwd", Role::talk, kNoRank},
    {"hostname", Role::talk, kNoRank},
    {"nvidia-smi", Role::talk, kNoRank},
    {"ls", Role::talk, kNoRank},
    {"cat", Role::talk, kNoRank},
    {"env", Role::talk, kNoRank},
    {"which", Role::talk, kNoRank},
    {"mkdir", Role::talk, kNoRank},
    {"sleep", Role::talk, kNoRank},
    {"trap", Role::talk, "ranks get TERM from the agent, and save"},
    {"scontrol", Role::talk, kNoRank},
    {"squeue", Role::talk, kNoRank},
    {"sinfo", Role::talk, kNoRank},
    {"scancel", Role::talk, "systole stop"},
    {"df", Role::talk, kNoRank},
    {"free", Role::talk, kNoRank},
    {"rm", Role::talk, kNoRank},
    {"cp", Role::talk, kNoRank},
    {"kubectl", Role::talk, "systole submit --on kubernetes does it; import reads the manifest itself"},
    {"pip", Role::talk, kInstalls},
    {"pip3", Role::talk, kInstalls},
    {"apt-get", Role::talk, kInstalls},
    {"apt", Role::talk, kInstalls},
    {"apk", Role::talk, kInstalls},
    {"git", Role::talk, kInstalls},
    {"gcloud", Role::places, ""},
    {"sbatch", Role::places, ""},
};

Role role_of(const ShellCommand& command, std::string_view& why) {
  const std::string name = base_name(command.words[0].text);
  const auto known = std::ranges::find(kKnown, name, &Known::name);
  if (known != std::end(kKnown)) {
    why = known->why;
    return known->role;
  }
  if (!is_launcher(command.words[0].text)) return Role::other;
  const bool module = command.words.size() > 2 && command.words[1].text == "-m" &&
                      command.words[2].text.starts_with("torch.distributed.");
  return name.starts_with("python") && !module ? Role::python : Role::launcher;
}

class ScriptReader {
 public:
  ScriptReader(std::vector<ShellCommand> commands, const std::string& file, Draft& draft)
      : commands_(std::move(commands)), file_(file), draft_(draft) {}

  void read() {
    const ShellCommand* program = find_program();
    for (const ShellCommand& command : commands_) {
      if (&command == program) break;  // what comes before it sets the stage
      before(command);
    }
    if (program != nullptr) start(*program);
    bool behind = false;
    for (const ShellCommand& command : commands_) {
      if (behind && !quiet(command)) draft_.left_out(command.raw(), "it comes behind the program");
      behind = behind || &command == program;
    }
  }

 private:
  static bool follows(const ShellCommand& command) { return command.before == "|" || command.before == "||"; }

  // The one of the strongest kind.
  const ShellCommand* find_program() {
    const ShellCommand *found = nullptr, *another = nullptr;
    Role strongest = Role::other;
    for (const ShellCommand& command : commands_) {
      std::string_view why;
      if (command.words.empty() || follows(command)) continue;
      const Role role = role_of(command, why);
      if (role < strongest) continue;
      another = role == strongest ? std::exchange(found, &command) : nullptr;
      found = &command;
      strongest = role;
    }
    if (another == nullptr) return found;
    draft_.wrong(
        error(ErrorKind::unsupported, "two programs are started, here and in line {}; a workload is one", another->line)
            .at({file_, found->line, 1})
            .hinted("import each on its own; systole submit --after RUN starts one behind another"));
    return nullptr;
  }

  bool quiet(const ShellCommand& command) const {
    std::string_view why;
    return command.words.empty() || role_of(command, why) == Role::nothing;
  }

  void assign(const std::string& name, const ShellWord& value, bool exported) {
    const std::string from = (exported ? "export " : "") + name + "=" + value.raw;
    if (exported && !value.expands) return draft_.variable(name, value.text, from);
    constexpr std::string_view kAgents[] = {"MASTER_ADDR", "MASTER_PORT", "RANK",
                                            "WORLD_SIZE",  "NODE_RANK",   "LOCAL_RANK"};
    if (std::ranges::find(kAgents, name) != std::end(kAgents))
      return draft_.left_out(from, "the agent sets what ranks find each other by");
    setup_.push_back(from);
  }

  void before(const ShellCommand& command) {
    if (command.words.empty()) {
      for (const auto& [name, value] : command.assignments) assign(name, value, false);
      return;
    }
    const std::string name = base_name(command.words[0].text);
    if (name == "export") return exports(command);
    std::string_view why = "what it does is not known here; start it before";
    switch (follows(command) ? Role::talk : role_of(command, why)) {
      case Role::nothing: return;
      case Role::setup: setup_.push_back(command.raw()); return;
      case Role::places: return places(command, name);
      default: draft_.left_out(command.raw(), std::string(why)); return;
    }
  }

  void exports(const ShellCommand& command) {
    for (const ShellWord& word : std::span(command.words).subspan(1)) {
      const std::size_t equals = word.text.find('='), raw = word.raw.find('=');
      if (equals == word.text.npos || raw == word.raw.npos) continue;
      ShellWord value = word;
      value.text = word.text.substr(equals + 1);
      value.raw = word.raw.substr(raw + 1);
      assign(word.text.substr(0, equals), value, true);
    }
  }

  void places(const ShellCommand& command, const std::string& name) {
    const std::span<const ShellWord> words = std::span(command.words).subspan(1);
    if (name == "gcloud") return read_gcloud(words, draft_);
    std::vector<ShellWord> flags(words.begin(), words.end());
    std::string wrapped;  // sbatch --wrap "python3 train.py"
    for (std::size_t w = 0; w < flags.size(); ++w) {
      if (!flags[w].text.starts_with("--wrap")) continue;
      const bool apart = flags[w].text == "--wrap" && w + 1 < flags.size();
      wrapped = apart ? flags[w + 1].text : flags[w].text.substr(std::min<std::size_t>(7, flags[w].text.size()));
      flags.erase(flags.begin() + static_cast<std::ptrdiff_t>(w),
                  flags.begin() + static_cast<std::ptrdiff_t>(w + (apart ? 2 : 1)));
      break;
    }
    const std::vector<ShellWord> rest = read_flags(flags, {sbatch_flags()}, {.program = "sbatch"}, draft_);
    if (!wrapped.empty()) return read_script(wrapped, "sbatch --wrap", draft_);
    draft_.wrong(error(ErrorKind::invalid, "sbatch {}: what that script starts stands in it",
                       rest.empty() ? "" : origin(rest[0].text))
                     .at({file_, command.line, 1})
                     .hinted("paste the script, with this line's options as lines of #SBATCH"));
  }

  void start(const ShellCommand& program) {
    for (const auto& [name, value] : program.assignments) assign(name, value, true);
    for (const std::string& to : program.redirections)
      draft_.left_out(to, "each rank's lines are kept with the run: systole logs");
    // A plain variable matters only to words that a shell expands.
    const bool expands = std::ranges::any_of(program.words, &ShellWord::expands);
    if (!expands)
      std::erase_if(setup_, [&](const std::string& line) {
        const std::size_t equals = line.find('=');
        const bool plain = equals != line.npos && line.find(' ') > equals;
        if (plain) draft_.left_out(line, "no word of the program has it");
        return plain;
      });
    read_program(program.words, setup_, draft_);
  }

  std::vector<ShellCommand> commands_;
  const std::string& file_;
  Draft& draft_;
  Setup setup_;
};

constexpr std::string_view kDirective = "#SBATCH";

// What Systole rendered has its workload beside it.
bool begin_rendered(const ImportSource& source, Draft& draft) {
  constexpr const char* kFile = "workload.yaml";
  const Result<std::string> text =
      source.beside ? source.beside(kFile) : Result<std::string>(error(ErrorKind::not_found, ""));
  if (!text.ok()) {
    draft.wrong(error(ErrorKind::not_found, "Systole rendered this script, and its {} is not beside it", kFile)
                    .at({source.file})
                    .hinted("systole import FOLDER/job.sbatch, where both are"));
    return false;
  }
  const Result<Workload> workload = read_workload(*text, kFile);
  if (!workload.ok()) {
    draft.wrong(workload.error());
    return false;
  }
  draft.begin_with(*workload, parse_yaml(*text, kFile).value());
  return true;
}

}  // namespace

void read_script(std::string_view text, const std::string& file, Draft& draft) {
  Result<std::vector<ShellCommand>> commands = read_shell(text, file);
  if (!commands.ok()) return draft.wrong(commands.error());
  ScriptReader(*std::move(commands), file, draft).read();
}

void read_batch_script(const ImportSource& source, Draft& draft) {
  const std::string mark = "\n#SBATCH --comment=systole/run=";
  const bool ours = source.text.find(mark) != source.text.npos;
  if (ours && !begin_rendered(source, draft)) return;
  if (ours && !draft.begun_with().resources.accelerators.empty()) {
    draft.left_out("lines of #SBATCH", "they are what render makes of resources.accelerators");
    return;
  }
  bool begun = false;
  int line = 0;
  for (std::string_view rest = source.text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::string_view now = rest.substr(0, end);
    rest = end == rest.npos ? "" : rest.substr(end + 1);
    ++line;
    if (!now.starts_with(kDirective)) {
      begun = begun || (!now.empty() && now[0] != '#' && now.find_first_not_of(" \t\r") != now.npos);
      continue;
    }
    if (begun) {
      draft.left_out(std::string(now), "it stands behind the first command, where Slurm does not look");
      continue;
    }
    const Result<std::vector<ShellWord>> read = read_plain_words(now.substr(kDirective.size()), {source.file, line, 1});
    if (!read.ok()) {
      draft.wrong(read.error());
      continue;
    }
    const std::vector<ShellWord>& words = *read;
    if (words.empty()) continue;
    if (words[0].text == "hetjob" || words[0].text == "packjob") {
      draft.wrong(error(ErrorKind::unsupported, "{}: nodes of a workload are all alike", origin(now))
                      .at({source.file, line, 1})
                      .hinted("import each part on its own"));
      continue;
    }
    read_flags(words, {sbatch_flags()}, {.program = "sbatch"}, draft);
  }
  if (!ours) read_script(source.text, source.file, draft);
}

}  // namespace systole
