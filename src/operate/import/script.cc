#include "operate/import/script.h"

#include <algorithm>

#include "operate/import/mounts.h"
#include "operate/import/slurm_flags.h"
#include "operate/import/variables.h"
#include "operate/import/wrappers.h"

namespace systole {
namespace {

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
    {"command", Role::talk, kNoRank},
    {"type", Role::talk, kNoRank},
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
    {"uv", Role::talk, kInstalls},
    {"poetry", Role::talk, kInstalls},
    {"pixi", Role::talk, kInstalls},
    {"pipenv", Role::talk, kInstalls},
    {"pdm", Role::talk, kInstalls},
    {"rye", Role::talk, kInstalls},
    {"hatch", Role::talk, kInstalls},
    {"gsutil", Role::talk, "volumes mounts a bucket that is there: { /data: { bucket: NAME } }"},
    {"gcloud", Role::places, ""},
    {"sbatch", Role::places, ""},
};

// The program that the command starts, without its wrappers.
Unwrapped unwrapped(const ShellCommand& command, const Draft& draft) {
  std::vector<ShellWord> words = command.words;
  if (words.empty()) return {};
  if (const auto said = words_of_variable(words[0], draft)) {  // $LAUNCHER train.py
    words.erase(words.begin());
    words.insert(words.begin(), said->begin(), said->end());
  }
  return unwrap(words);
}

Role role_of(const ShellCommand& command, const Draft& draft, std::string_view& why) {
  const Unwrapped u = unwrapped(command, draft);
  if (u.script) return launcher_in(u.script->text).empty() ? Role::other : Role::launcher;
  if (u.words.empty() && !command.words.empty()) {
    why = kNoRank;
    return Role::talk;
  }
  if (is_mount(u.words)) return Role::places;
  const std::string name = program_name(u.words[0]);
  const auto known = std::ranges::find(kKnown, name, &Known::name);
  if (known != std::end(kKnown)) {
    why = known->why;
    return known->role;
  }
  if (!is_launcher(name)) return Role::other;
  return is_python(name) && !is_torchrun(u.words) ? Role::python : Role::launcher;
}

class ScriptReader {
 public:
  ScriptReader(std::vector<ShellCommand> commands, const std::string& file, Draft& draft, Setup setup)
      : commands_(std::move(commands)), file_(file), draft_(draft), setup_(std::move(setup)) {}

  void read() {
    if (refuse_document()) return;
    for (const ShellCommand& command : commands_) remember(command);
    const ShellCommand* program = find_program();
    std::string_view why;
    alone_ = program == nullptr || role_of(*program, draft_, why) == Role::places;
    for (const ShellCommand& command : commands_) alone_ = alone_ && !makes_nodes(command);
    for (const ShellCommand& command : commands_) {
      if (&command == program) break;  // earlier commands are setup
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
  // NAME=value, export NAME=value: launchers' words may use them.
  void remember(const ShellCommand& command) {
    if (command.words.empty())
      for (const auto& [name, value] : command.assignments) draft_.remember(name, value);
    if (command.words.empty() || command.words[0].text != "export") return;
    for (const ShellWord& word : std::span(command.words).subspan(1))
      if (const auto said = assigned(word)) draft_.remember(said->first, said->second);
  }

  static std::optional<std::pair<std::string, ShellWord>> assigned(const ShellWord& word) {
    const std::size_t equals = word.text.find('='), raw = word.raw.find('=');
    if (equals == word.text.npos || raw == word.raw.npos) return std::nullopt;
    ShellWord value = word;
    value.text = word.text.substr(equals + 1);
    value.raw = word.raw.substr(raw + 1);
    return std::pair(word.text.substr(0, equals), std::move(value));
  }

  static bool follows(const ShellCommand& command) { return command.before == "|" || command.before == "||"; }

  // A YAML key or a JSON brace in place of a program: such a text is not a script.
  bool refuse_document() {
    for (const ShellCommand& command : commands_) {
      if (command.words.empty()) continue;
      const std::string& text = command.words[0].text;
      const bool key = text.size() > 1 && text.ends_with(':');
      if (!key && text[0] != '{') return false;
      draft_.wrong(text == "systole:" ? error(ErrorKind::invalid, "it is a workload already")
                                            .at({file_, command.line, 1})
                                            .hinted("systole check " + file_)
                                      : error(ErrorKind::invalid,
                                              "it reads as {}, and no object of Kubernetes is in it: apiVersion and "
                                              "kind",
                                              key ? "YAML" : "JSON")
                                            .at({file_, command.line, 1})
                                            .hinted("paste the manifest whole, or the line that starts the program"));
      return true;
    }
    return false;
  }

  // The command of the strongest kind.
  const ShellCommand* find_program() {
    const ShellCommand *found = nullptr, *another = nullptr;
    Role strongest = Role::other;
    for (const ShellCommand& command : commands_) {
      std::string_view why;
      if (command.words.empty() || follows(command)) continue;
      const Role role = role_of(command, draft_, why);
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

  bool makes_nodes(const ShellCommand& command) const {
    const Unwrapped u = unwrapped(command, draft_);
    return !u.words.empty() && program_name(u.words[0]) == "gcloud" && makes_machines(std::span(u.words).subspan(1));
  }

  bool quiet(const ShellCommand& command) const {
    std::string_view why;
    return command.words.empty() || role_of(command, draft_, why) == Role::nothing;
  }

  void assign(const std::string& name, const ShellWord& value, bool exported) {
    const std::string from = (exported ? "export " : "") + name + "=" + value.raw;
    if (exported && !value.expands) return draft_.variable(name, value.text, from);
    if (is_agents_variable(name)) return draft_.left_out(from, "the agent sets what ranks find each other by");
    setup_.lines.push_back(from);
  }

  void before(const ShellCommand& command) {
    if (command.words.empty()) {
      for (const auto& [name, value] : command.assignments) assign(name, value, false);
      return;
    }
    if (program_name(command.words[0]) == "export") return exports(command);
    std::string_view why = "what it does is not known here; start it before";
    switch (follows(command) ? Role::talk : role_of(command, draft_, why)) {
      case Role::nothing: return;
      case Role::setup: setup_.lines.push_back(command.raw()); return;
      case Role::places: return places(command);
      default: draft_.left_out(command.raw(), std::string(why)); return;
    }
  }

  void exports(const ShellCommand& command) {
    for (const ShellWord& word : std::span(command.words).subspan(1))
      if (const auto said = assigned(word)) assign(said->first, said->second, true);
  }

  void places(const ShellCommand& command) {
    const Unwrapped u = unwrapped(command, draft_);
    const std::span<const ShellWord> words = std::span(u.words).subspan(1);
    if (is_mount(u.words)) return read_mount(u.words, draft_);
    if (program_name(u.words[0]) == "gcloud") return read_gcloud(words, alone_, draft_);
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
    const std::vector<ShellWord> rest =
        read_flags(flags, {sbatch_flags()}, {.program = "sbatch", .shortened = true}, draft_);
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
    read_program(program.words, setup_, draft_);
  }

  std::vector<ShellCommand> commands_;
  const std::string& file_;
  Draft& draft_;
  Setup setup_;
  bool alone_ = true;
};

constexpr std::string_view kDirective = "#SBATCH";

// A script that Systole rendered has its workload beside it.
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
  if (workload->kind == Workload::Kind::serve) {
    draft.wrong(error(ErrorKind::unsupported, "Systole rendered this script, of a server; jobs are imported")
                    .at({source.file})
                    .hinted(fmt::format("its workload is {} beside it", kFile)));
    return false;
  }
  draft.begin_with(*workload, parse_yaml(*text, kFile).value());
  return true;
}

}  // namespace

void read_script(std::string_view text, const std::string& file, Draft& draft, const Setup& setup) {
  Result<std::vector<ShellCommand>> commands = read_shell(text, file);
  if (!commands.ok()) return draft.wrong(commands.error());
  ScriptReader(*std::move(commands), file, draft, setup).read();
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
    const Where where{source.file, line, 1};
    if (const std::size_t at = find_hard_space(now); at != now.npos) {
      draft.wrong(error(ErrorKind::invalid, "a no-break space stands there, which sbatch takes for no space")
                      .at({source.file, line, static_cast<int>(at) + 1})
                      .hinted("type the space again"));
      continue;
    }
    const std::size_t before = draft.num_errors();
    const std::vector<ShellWord> others =
        read_flags(words, {sbatch_flags()}, {.program = "sbatch", .shortened = true}, draft);
    draft.place_errors(before, where);
    if (!others.empty())
      draft.wrong(error(ErrorKind::invalid, "'{}' is no option; sbatch: Invalid directive found in batch script",
                        origin(others[0].text))
                      .at(Where(where))
                      .hinted("take it out, or put the option in front of it that it is the value of"));
  }
  if (!ours) read_script(source.text, source.file, draft);
}

}  // namespace systole
