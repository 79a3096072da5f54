#include "operate/import/wrappers.h"

#include <algorithm>

namespace systole {
namespace {

constexpr std::string_view kForeground = "the agent starts ranks and holds them: no terminal is theirs";

struct Wrapper {
  std::string_view name, verb;  // "uv", "run"; no verb: the program follows the options
  std::string_view values;      // options that take the next word as a value
  int positions = 0;            // number of its own words after the options
  std::string_view gone = "";   // why it is removed; empty: it stays
};
constexpr Wrapper kWrappers[] = {
    {"uv", "run",
     "--with --with-editable --with-requirements -w --env-file --extra --no-extra --group --no-group --only-group "
     "--python -p --package --directory --project --index --default-index --index-url -i --extra-index-url "
     "--find-links -f --cache-dir --config-file --color --link-mode --config-setting -C --refresh-package "
     "--upgrade-package -P --reinstall-package --exclude-newer --resolution --prerelease --allow-insecure-host "
     "--keyring-provider --python-platform --index-strategy --fork-strategy"},
    {"poetry", "run", "-C --directory -P --project"},
    {"pixi", "run", "-e --environment --manifest-path -m -p --platform --frozen-lock --color --concurrent-solves"},
    {"conda", "run", "-n --name -p --prefix --cwd"},
    {"mamba", "run", "-n --name -p --prefix --cwd -e --env -a --attach -r --root-prefix"},
    {"micromamba", "run", "-n --name -p --prefix --cwd -e --env -a --attach -r --root-prefix"},
    {"pipenv", "run", "--python --pypi-mirror"},
    {"pdm", "run", "-p --project --venv -s --site-packages"},
    {"rye", "run", "--pyproject"},
    {"hatch", "run", "-e --env -p --project"},
    {"nsys", "profile",
     "-o -t -s -b -c -d -y -e -f -w -x -p --output --trace --sample --backtrace --capture-range --duration --delay "
     "--env-var --force-overwrite --stats --capture-range-end --cuda-memory-usage --gpu-metrics-device --kill "
     "--cudabacktrace --python-backtrace --export --wait --stop-on-exit --session-new"},
    {"numactl", "", "-i -p -N -C -m -P -w -H --interleave --preferred --cpunodebind --physcpubind --membind"},
    {"nice", "", "-n --adjustment"},
    {"ionice", "", "-c -n --class --classdata"},
    {"chrt", "", "-T -P -D --sched-runtime --sched-period --sched-deadline", 1},
    {"taskset", "", "", 1},
    {"stdbuf", "", "-i -o -e --input --output --error"},
    {"timeout", "", "-s --signal -k --kill-after", 1},
    {"unbuffer", "", ""},
    {"catchsegv", "", ""},
    {"xvfb-run", "", "-e -f -n -p -s -w --error-file --auth-file --server-num --server-args --wait"},
    {"prlimit", "", ""},
    {"exec", "", "-a", 0, "-"},
    {"command", "", "", 0, "-"},
    {"builtin", "", "", 0, "-"},
    {"env", "", "-u --unset -C --chdir"},
    {"sudo", "",
     "-u --user -g --group -h --host -p --prompt -C --close-from -D --chdir -r --role -t --type -T --command-timeout "
     "-U --other-user -R --chroot",
     0, "-"},
    {"time", "", "-f --format -o --output", 0, "systole runs says how long it took"},
    {"nohup", "", "", 0, kForeground},
    {"setsid", "", "", 0, kForeground},
};

bool is_option(const ShellWord& word) { return word.text.size() > 1 && word.text[0] == '-' && word.text != "--"; }

// Index after the options that begin at `at`.
std::size_t behind_options(std::span<const ShellWord> words, std::size_t at, std::string_view values) {
  const std::string padded = " " + std::string(values) + " ";
  while (at < words.size() && is_option(words[at])) {
    const bool apart = padded.find(" " + words[at].text + " ") != padded.npos;
    at += apart ? 2 : 1;
  }
  if (at < words.size() && words[at].text == "--") ++at;
  return std::min(at, words.size());
}

ShellWord word_of(const char* text) { return {text, text, false}; }

// `uv run -m MODULE` is `uv run python -m MODULE`: the option belongs to the program.
std::size_t module_option(std::span<const ShellWord> words, std::size_t from, std::size_t to) {
  for (std::size_t w = from; w < to && w < words.size(); ++w)
    if (words[w].text == "-m" || words[w].text == "--module") return w;
  return words.size();
}

bool is_shell(const std::string& name) {
  constexpr std::string_view kShells[] = {"sh", "bash", "dash", "zsh", "ksh"};
  return std::ranges::find(kShells, name) != std::end(kShells);
}

// bash -euo pipefail -lc SCRIPT
bool take_script(Unwrapped& u) {
  bool script = false, login = false;
  std::size_t at = 1;
  for (; at < u.words.size(); ++at) {
    const std::string& text = u.words[at].text;
    if (text.size() < 2 || (text[0] != '-' && text[0] != '+')) break;
    if (text.starts_with("--")) {
      login = login || text == "--login";
      if (text == "--rcfile" || text == "--init-file") ++at;
      continue;
    }
    script = script || text.find('c') != text.npos;
    login = login || text.find('l') != text.npos;
    if (text.find('o') != text.npos || text.find('O') != text.npos) ++at;
  }
  if (!script || at + 1 != u.words.size()) return false;
  u.script = u.words[at];
  u.login = login;
  return true;
}

// env -S 'A=1 program': replaced by the words in that text.
bool split_words(Unwrapped& u, std::size_t at) {
  const std::string& text = u.words[at].text;
  const std::size_t equals = text.find('=');
  const bool apart = text == "-S" || text == "--split-string";
  if (apart && at + 1 >= u.words.size()) return false;
  const std::string said = apart ? u.words[at + 1].text : text.substr(text[1] == 'S' ? 2 : equals + 1);
  const Result<std::vector<ShellWord>> words = read_plain_words(said, {});
  if (!words.ok() || (text[1] != 'S' && !apart && equals == text.npos)) return false;
  const auto here = u.words.begin() + static_cast<std::ptrdiff_t>(at);
  u.words.insert(u.words.erase(here, here + (apart ? 2 : 1)), words->begin(), words->end());
  return true;
}

// NAME=value before the program; returns the index after them.
std::size_t take_variables(Unwrapped& u, std::size_t at) {
  for (; at < u.words.size(); ++at) {
    const std::size_t equals = u.words[at].text.find('='), raw = u.words[at].raw.find('=');
    if (equals == u.words[at].text.npos || equals == 0 || raw == u.words[at].raw.npos) break;
    ShellWord value = u.words[at];
    value.text = value.text.substr(equals + 1);
    value.raw = value.raw.substr(raw + 1);
    u.variables.emplace_back(u.words[at].text.substr(0, equals), std::move(value));
  }
  return at;
}

bool take_environment(Unwrapped& u) {
  std::size_t at = 1;
  std::vector<ShellWord> options = {u.words[0]};
  for (; at < u.words.size() && is_option(u.words[at]); ++at) {
    const std::string text = u.words[at].text;
    if (text.starts_with("-S") || text.starts_with("--split-string")) return split_words(u, at);
    u.bare = u.bare || text == "-i" || text == "--ignore-environment";
    options.push_back(u.words[at]);
    const bool apart = text == "-u" || text == "--unset" || text == "-C" || text == "--chdir";
    if (apart && at + 1 < u.words.size()) options.push_back(u.words[++at]);
  }
  u.bare = u.bare || (at < u.words.size() && u.words[at].text == "-");
  if (at < u.words.size() && (u.words[at].text == "-" || u.words[at].text == "--")) ++at;
  at = take_variables(u, at);
  if (options.size() > 1) u.kept.insert(u.kept.end(), options.begin(), options.end());
  u.words.erase(u.words.begin(), u.words.begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

// Removes one wrapper; false if there is none.
bool step(Unwrapped& u) {
  if (u.words.empty() || u.script) return false;
  const std::string name = program_name(u.words[0]);
  if (name == "env") return take_environment(u);
  if (is_shell(name)) return take_script(u) && false;
  const auto wrapper = std::ranges::find(kWrappers, name, &Wrapper::name);
  if (wrapper == std::end(kWrappers)) return false;
  std::size_t at = 1;
  if (!wrapper->verb.empty()) {
    at = behind_options(u.words, at, wrapper->values);
    if (at >= u.words.size() || u.words[at].text != wrapper->verb) return false;
    ++at;
  }
  const std::size_t from = at;
  if (name == "command" && at < u.words.size() && (u.words[at].text == "-v" || u.words[at].text == "-V")) return false;
  at = behind_options(u.words, at, wrapper->values);
  if (name == "uv")
    if (const std::size_t module = module_option(u.words, from, at); module < u.words.size()) {
      u.kept.insert(u.kept.end(), u.words.begin(), u.words.begin() + static_cast<std::ptrdiff_t>(module));
      std::vector<ShellWord> rest = {word_of("python"), word_of("-m")};
      rest.insert(rest.end(), u.words.begin() + static_cast<std::ptrdiff_t>(module) + 1, u.words.end());
      u.words = std::move(rest);
      return true;
    }
  at = std::min(at + static_cast<std::size_t>(wrapper->positions), u.words.size());
  if (name == "sudo") {
    u.sudo = true;
    at = take_variables(u, at);
  }
  const auto end = u.words.begin() + static_cast<std::ptrdiff_t>(at);
  if (wrapper->gone.empty()) {
    u.kept.insert(u.kept.end(), u.words.begin(), end);
  } else if (wrapper->gone != "-") {
    u.gone.push_back({name, std::string(wrapper->gone)});
  }
  u.words.erase(u.words.begin(), end);
  return true;
}

}  // namespace

std::string program_name(const ShellWord& word) {
  std::string text = word.text;
  for (const std::string_view begin : {"$(which ", "$(command -v ", "`which ", "`command -v "})
    if (text.starts_with(begin)) text = text.substr(begin.size(), text.find_first_of(")`", 1) - begin.size());
  return text.substr(text.rfind('/') + 1);
}

Unwrapped unwrap(std::span<const ShellWord> words) {
  Unwrapped u;
  u.words.assign(words.begin(), words.end());
  while (step(u)) {}
  return u;
}

}  // namespace systole
