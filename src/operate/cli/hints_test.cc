// Every hint can be typed: each command, option and key named in a text of the sources exists. The texts are the string
// literals of all sources except tests, so hints that no test triggers are checked too.

#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <sstream>

#include "describe/spec/schema.h"
#include "ground/base/testing/places.h"
#include "operate/cli/command.h"

namespace systole::cli {
namespace {

struct Literal {
  std::string place;  // "src/operate/cli/plan.cc:12"
  std::string text;   // adjacent literals are joined, as by the compiler
};

// The string literals of a source, without comments and character literals.
class LiteralReader {
 public:
  LiteralReader(std::string name, const std::string& source) : name_(std::move(name)), source_(source) {}
  std::vector<Literal> read() {
    while (at_ < source_.size()) step();
    end();
    return std::move(literals_);
  }

 private:
  bool follows(std::string_view text) const { return source_.compare(at_, text.size(), text) == 0; }
  void skip_to(std::string_view mark, std::size_t behind) {
    const std::size_t found = source_.find(mark, at_);
    at_ = found == source_.npos ? source_.size() : found + behind;
  }
  void begin() {
    if (!open_) begun_ = at_;
    open_ = true;
  }
  void end() {
    const auto line = 1 + std::count(source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(begun_), '\n');
    if (open_) literals_.push_back({fmt::format("{}:{}", name_, line), std::move(text_)});
    text_.clear();
    open_ = false;
  }
  void raw() {
    begin();
    const std::size_t bracket = source_.find('(', at_);
    const std::string close = ")" + source_.substr(at_ + 2, bracket - at_ - 2) + "\"";
    const std::size_t last = source_.find(close, bracket);
    text_ += source_.substr(bracket + 1, last - bracket - 1);
    at_ = last + close.size();
  }
  void quoted() {
    begin();
    for (++at_; source_[at_] != '"'; ++at_) {
      if (source_[at_] != '\\') {
        text_ += source_[at_];
        continue;
      }
      ++at_;
      text_ += source_[at_] == 'n' ? '\n' : source_[at_];
    }
    ++at_;
  }
  void step() {
    const bool in_number = at_ > 0 && std::isdigit(static_cast<unsigned char>(source_[at_ - 1])) != 0;
    if (follows("//")) return skip_to("\n", 0);
    if (follows("/*")) return skip_to("*/", 2);
    if (follows("R\"")) return raw();
    if (follows("\"")) return quoted();
    if (std::isspace(static_cast<unsigned char>(source_[at_])) == 0) end();
    if (follows("'") && !in_number) {
      for (++at_; source_[at_] != '\''; ++at_)
        if (source_[at_] == '\\') ++at_;
    }
    ++at_;
  }

  const std::string name_;
  const std::string& source_;
  std::vector<Literal> literals_;
  std::string text_;
  std::size_t at_ = 0, begun_ = 0;
  bool open_ = false;
};

const std::vector<Literal>& literals() {
  static const std::vector<Literal> all = [] {
    namespace fs = std::filesystem;
    std::vector<Literal> found;
    const fs::path root(SYSTOLE_SOURCE_DIR);
    for (const auto& entry : fs::recursive_directory_iterator(root / "src")) {
      const std::string path = fs::relative(entry.path(), root).string();
      const std::string kind = entry.path().extension().string();
      if ((kind != ".cc" && kind != ".h") || path.find("_test.") != path.npos || path.starts_with("src/laws/") ||
          path.find("/testing/") != path.npos)
        continue;
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      for (Literal& literal : LiteralReader(path, text.str()).read()) found.push_back(std::move(literal));
    }
    return found;
  }();
  return all;
}

struct Program {
  std::unique_ptr<Clock> clock = real_clock();
  Printer out{*clock};
  Context context{out, *clock, {}, ExitCode::done};
  std::unique_ptr<CLI::App> app = make_app(context);

  // Options of a command and of its parents.
  static std::set<std::string> options_of(const CLI::App* command) {
    std::set<std::string> names;
    for (; command != nullptr; command = command->get_parent())
      for (const CLI::Option* option : command->get_options()) {
        for (const std::string& name : option->get_lnames()) names.insert("--" + name);
        for (const std::string& name : option->get_snames()) names.insert("-" + name);
      }
    return names;
  }
  std::set<std::string> all_options() const {
    std::set<std::string> names = options_of(app.get());
    for (const CLI::App* command : app->get_subcommands({})) {
      names.merge(options_of(command));
      for (const CLI::App* below : command->get_subcommands({})) names.merge(options_of(below));
    }
    return names;
  }
};

// "systole reads up to 3" is a sentence, and "systole chunk" a file header.
const std::set<std::string> kProse{"and",      "blocks",  "chunk", "finds", "images", "is",   "key",   "linear",
                                   "manifest", "masking", "on",    "proof", "reads",  "that", "tokens"};

TEST(Hints, name_commands_and_options_that_there_are) {
  const Program program;
  const std::regex command_line(R"((^|[^\w./{}-])systole ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?([^\n;`'"]*))");
  const std::regex clause_end(R"(, | or |\. | systole |: )");
  const std::regex option(R"((^|[^\w-])(--[a-z0-9][a-z0-9-]*|-[a-zA-Z]\b))");
  int seen = 0;
  for (const Literal& literal : literals()) {
    for (std::sregex_iterator it(literal.text.begin(), literal.text.end(), command_line), none; it != none; ++it) {
      const CLI::App* command = find_command(*program.app, (*it)[2].str());
      if (command == nullptr) {
        EXPECT_TRUE(kProse.contains((*it)[2].str())) << literal.place << ": " << (*it)[0];
        continue;
      }
      ++seen;
      if (const CLI::App* below = find_command(*command, (*it)[3].str())) command = below;
      std::string words = (*it)[4].str();
      if (std::smatch stop; std::regex_search(words, stop, clause_end)) words = stop.prefix().str();
      const std::set<std::string> options = Program::options_of(command);
      for (std::sregex_iterator word(words.begin(), words.end(), option); word != none; ++word)
        EXPECT_TRUE(options.contains((*word)[2].str())) << literal.place << ": " << (*it)[0] << ": " << (*word)[2];
    }
  }
  EXPECT_GT(seen, 150) << "the sources were read";
}

// Options that stand alone. Code that reads or writes other programs' command lines, or hints at them, may have any.
TEST(Hints, name_options_that_there_are) {
  const std::set<std::string> kOthers{"--shm-size", "--sort", "--list", "--steps", "--label", "--bounding-set",
                                      "--kill-child",
                                      "--ephemeral-storage-local-ssd",  // gcloud's, of a pool of nodes
                                      // Between processes of the program.
                                      "--child", "--probe", "--hash", "--stablehlo-legalize-quant-to-math"};
  // bq, tar, aws and gcloud, s3's query parameters.
  const std::regex others(
      "^src/(operate/(import|render|cluster|targets|launch)|execute/data/bigquery|ground/cloud)/|"
      "^src/(execute/data/formats/tar_|ground/store/(gcs|s3)_)");
  const std::set<std::string> options = Program().all_options();
  const std::regex option(R"((^|[^\w-])(--[a-z][a-z0-9-]*)(?![\w-]))");
  for (const Literal& literal : literals()) {
    if (std::regex_search(literal.place, others)) continue;
    for (std::sregex_iterator it(literal.text.begin(), literal.text.end(), option), none; it != none; ++it)
      EXPECT_TRUE(options.contains((*it)[2].str()) || kOthers.contains((*it)[2].str()))
          << literal.place << ": " << (*it)[2];
  }
}

TEST(Hints, name_keys_that_there_are) {
  const std::regex dotted(R"((^|[^\w./}-])([a-z_]+(?:\.[a-z0-9_]+)+)(?![\w(/.]))");
  // Files, and words of other documents: the lock, an image.
  const std::regex other(
      R"(.*\.(json|jsonl|yaml|safetensors|csv|tsv|txt|md|sh|tmp|lock|log|db|sbatch|svg|mlir|pt|pb|py|h|cc|model|conf|tfrecord)|systole\..*)");
  std::set<std::string> tops;
  for (const std::string& name : schema().names_under("")) tops.insert(name);
  int seen = 0;
  for (const Literal& literal : literals()) {
    for (std::sregex_iterator it(literal.text.begin(), literal.text.end(), dotted), none; it != none; ++it) {
      const std::string name = (*it)[2].str();
      if (!tops.contains(name.substr(0, name.find('.'))) || std::regex_match(name, other)) continue;
      ++seen;
      EXPECT_TRUE(schema().key(name) != nullptr || schema().section(name) != nullptr)
          << literal.place << ": '" << name << "' in: " << literal.text.substr(0, 120);
    }
  }
  EXPECT_GT(seen, 300) << "the sources were read";
}

// "1 rows" would come from a noun in a format string: counted() inflects the noun. Texts that are hashed or are part of
// a name, and numbers of other kinds, are exempt.
TEST(Texts, count_with_counted) {
  const std::regex count(
      R"(\{[^{}]*\} (?:(?:other|more|logical|published|chunk|data) )?(offers|ranks|files|nodes|chips|machines|steps|tokens|rows|)"
      R"(layouts|hosts|errors|events|threads|devices|slices|documents|shards|cores|days|hours|times|workers|tensors|)"
      R"(pieces|microbatches|GPUs|pairs|keys|processes|warnings|checkpoints|layers|lines|zones|elements|records|)"
      R"(stages|options|experts|heads|restarts|jobs|tasks|axes|replicas|partitions|characters|entries|chunks|loops)\b)");
  const std::set<std::string> kStay{"{:.4g} tokens", "{:.3g} rows", "{} logical shards", "{} devices"};
  // Sources of the commands' user-visible text.
  const std::regex looked_at(
      "^src/(operate/(cli|run)|execute/weights/hf_folder|"
      "predict/plan/(chosen_plan|layout_prover|hardware_plan|plan_|prediction_error|scaled_plan)|"
      "predict/prove/(beside|compute_beside|job_on_slice|proof)|predict/perf/predicted_peak)");
  for (const Literal& literal : literals()) {
    if (!std::regex_search(literal.place, looked_at)) continue;
    for (std::sregex_iterator it(literal.text.begin(), literal.text.end(), count), none; it != none; ++it)
      EXPECT_TRUE(kStay.contains((*it)[0].str())) << literal.place << ": '" << (*it)[0] << "' in: " << literal.text;
  }
}

// The reader itself: only literals are read, and adjacent ones are joined.
TEST(Hints, are_read_out_of_sources) {
  const std::string source = R"x(a("one " /* "no" */ "two\n", 'c', '"', 1'000); // "no"
b(R"y(raw "text")y" "!");)x";
  const std::vector<Literal> found = LiteralReader("f.cc", source).read();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text, "one two\n");
  EXPECT_EQ(found[1].text, "raw \"text\"!");
  EXPECT_EQ(found[1].place, "f.cc:2");
}

}  // namespace
}  // namespace systole::cli
