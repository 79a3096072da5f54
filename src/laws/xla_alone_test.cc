// The files that a host needs for a run on a device, besides the vendor's plugin: a folder has only these, and the
// program runs from there to the end of a job.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "ground/base/testing/files.h"
#include "ground/base/testing/places.h"
#include "laws/xla_runs.h"

namespace systole::laws {
namespace {

// Part of every glibc system.
bool is_of_the_c_library(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  for (const char* part : {"libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "ld-linux"}) {
    if (name.starts_with(part)) return true;
  }
  return false;
}

class Host {
 public:
  // The stripped program, and its libraries.
  explicit Host(const Workshop& shop) : folder_(shop.path("host")), looked_(shop.path("looked")) {
    std::filesystem::create_directory(folder_);
    std::filesystem::create_directory(looked_);
    Command fill = shop.command({});
    fill.argv = {"sh", "-c",
                 "strip -o \"$1/systole\" \"$0\" && ldd \"$0\" | sed -n 's/.*=> \\(\\/[^ ]*\\) .*/\\1/p' | grep -v "
                 "-e /libc.so -e /libm.so | xargs -I{} cp -L {} \"$1\"",
                 fill.argv[0], folder_};
    const Captured filled = run_captured(fill).value();
    CHECK(filled.exit.ok(), "{}", filled.err);
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      bytes_ += static_cast<std::int64_t>(file.file_size());
      ++files_;
    }
    // These fake files are found first, and are not libraries.
    for (const char* absent :
         {"libdnnl.so.2", "libgloo.so.0", "libsentencepiece.so.0", "libsentencepiece_train.so.0"}) {
      CHECK(!std::filesystem::exists(folder_ + "/" + absent), "{} is linked", absent);
      std::ofstream(folder_ + "/" + absent) << "absent";
    }
  }

  void send(Command& command) const {
    command.argv[0] = folder_ + "/systole";
    command.env.push_back({"LD_LIBRARY_PATH", folder_});
    command.env.push_back({"LD_DEBUG", "libs"});
    command.env.push_back({"LD_DEBUG_OUTPUT", looked_ + "/process"});
  }

  // Libraries that any of its processes loaded: those in the folder, and others.
  struct Used {
    std::set<std::string> here, elsewhere;
  };
  Used used() const {
    Used used;
    for (const auto& file : std::filesystem::directory_iterator(looked_)) {
      std::istringstream lines(text_of(file.path()));
      for (std::string line; std::getline(lines, line);) {
        const std::string mark = "calling init: ";
        const std::size_t at = line.find(mark);
        if (at == line.npos) continue;
        const std::string path = line.substr(at + mark.size());
        if (!is_of_the_c_library(path)) (path.starts_with(folder_ + "/") ? used.here : used.elsewhere).insert(path);
      }
    }
    return used;
  }

  std::int64_t bytes() const { return bytes_; }
  int files() const { return files_; }

 private:
  std::string folder_, looked_;
  std::int64_t bytes_ = 0;
  int files_ = 0;
};

constexpr const char* kLinear = R"(systole: 1
name: line
model: { family: mlp, inputs: 4, outputs: 2 }
data: { kind: linear, rows: 64, held_out_rows: 16, noise: 0.1 }
train: { batch: 8, steps: 12, optimizer: { kind: sgd, rate: 0.05 }, precision: f32 }
)";

constexpr const char* kText = R"(systole: 1
name: text
model: { family: gpt, layers: 1, width: 16, heads: 2, context: 32, vocabulary: 704 }
data:
  train: { files: text.txt }
  held_out: { fraction: 10% }
  tokenizer: { kind: byte_level_bpe, file: tokenizer.json }
  folder: bpe
train: { batch: 2, steps: 3, optimizer: { rate: 1e-3 }, precision: f32 }
)";

// Jobs without SentencePiece's tokenizer run from that folder to their end; it has at most 40 MB.
TEST_F(XlaRuns, needs_few_files_beside_the_plugin) {
  const Host host(shop_);
  note(fmt::format("beside the plugin: {} files of {} B", host.files(), host.bytes()));
  EXPECT_GT(host.files(), 5);
  if (!is_sanitized()) { EXPECT_LE(host.bytes(), 40'000'000); }
  shop_.write("line.yaml", kLinear);
  shop_.write("text.yaml", kText);
  shop_.write("tokenizer.json", text_of(SYSTOLE_SOURCE_DIR "/src/execute/data/golden/llama3.json"));
  for (const auto& [job, steps] : {std::pair("line", 12u), std::pair("text", 3u)}) {
    Command command =
        shop_.command({"run", std::string(job) + ".yaml", "--device", "xla-cpu", "--folder", std::string(job) + "-1"});
    command.env.push_back({"XDG_CACHE_HOME", cache_->path("cache")});
    command.env.push_back({"ASAN_OPTIONS", "detect_leaks=0"});
    host.send(command);
    const Captured ran = run_captured(command, {.timeout = Seconds(240.0)}).value();
    ASSERT_EQ(ran.exit.code, 0) << job << ran.err;
    EXPECT_EQ(losses_of(shop_.events(std::string(job) + "-1")).size(), steps) << job;
  }
  const Host::Used used = host.used();
  EXPECT_GT(used.here.size(), 5u);
  ASSERT_EQ(used.elsewhere.size(), 1u) << testing::PrintToString(used.elsewhere);
  EXPECT_EQ(*used.elsewhere.begin(), pjrt::find_plugin("cpu", pjrt::plugins_folder()).value().path);
}

// A job that needs it says so, in one sentence with the remedy.
TEST_F(XlaRuns, a_tokenizer_of_SentencePiece_needs_its_library) {
  const Host host(shop_);
  Command command = shop_.command({"run", "job.yaml", "--device", "xla-cpu", "--set", "train.exact=false"});
  host.send(command);
  const Captured refused = run_captured(command).value();
  EXPECT_EQ(refused.exit.code, 3) << refused.err;
  EXPECT_NE(refused.err.find("SentencePiece's, which cannot be loaded: "), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("hint: apt-get install libsentencepiece0"), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(shop_.path("tiny-1")));
}

}  // namespace
}  // namespace systole::laws
